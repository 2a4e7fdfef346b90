# The HTTP service, built from this source. With the CPU build of torch (docs/how-to/install.md):
#   docker build --build-arg TORCH_INDEX=ADDRESS -t manyheads .   ADDRESS: the one that "Get Started" of pytorch.org shows for CPU
# Without TORCH_INDEX the image has the registry's torch, on Linux with 4 GB of CUDA packages.
FROM python:3.12-slim
ARG TORCH_INDEX
RUN apt-get update && apt-get install --no-install-recommends -y gcc libc6-dev && rm -rf /var/lib/apt/lists/*
COPY . /source
# --no-compile: the bytecode of all modules would take 240 MB.
RUN pip install --no-cache-dir --no-compile --constraint /source/constraints.txt ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch
RUN pip install --no-cache-dir --no-compile --constraint /source/constraints.txt "/source[serve]"
RUN useradd --system manyheads
USER manyheads
ENV MANYHEADS_CACHE=/tmp/manyheads
EXPOSE 8876
HEALTHCHECK CMD python -c "import urllib.request as r; r.urlopen('http://127.0.0.1:8876/ready')"
ENTRYPOINT ["manyheads", "serve", "--host", "0.0.0.0", "--allow-host", "*"]
CMD ["/model"]
