import torch

from manyheads.model.masks import View, count_places

from model.makers import causal_view, real


def test_places_count_real_tokens_wherever_padding_stands() -> None:
    assert count_places(real("xxx..", "..xxx", "x.x.x", ".....")).tolist() == [
        [0, 1, 2, 2, 2],
        [0, 0, 0, 1, 2],
        [0, 0, 1, 1, 2],
        [0, 0, 0, 0, 0],
    ]


def test_everywhere_sees_every_real_place() -> None:
    view = View.everywhere(real("xx.", "..."))
    assert view.visible.shape == (2, 1, 1, 3)
    assert view.visible[:, 0, 0].tolist() == [[True, True, False], [False] * 3]
    assert torch.equal(view.query_places, view.key_places)


def test_backward_sees_itself_and_the_real_ones_before() -> None:
    assert torch.equal(
        causal_view(real("xxx", ".xx")).visible[:, 0],
        torch.stack([real("x..", "xx.", "xxx"), real("...", ".x.", ".xx")]),
    )


def test_backward_without_padding_need_not_be_drawn() -> None:
    view = causal_view(real("xxx", "xxx"))
    assert view.is_triangle
    assert torch.equal(view.visible[0, 0], real("x..", "xx.", "xxx"))
    assert not causal_view(real("xxx", "xx.")).is_triangle


def test_backward_of_the_last_places_is_the_end_of_the_whole() -> None:
    is_real = real("xxxxx", "xx.xx")
    whole, last = causal_view(is_real), View.backward(is_real, count_places(is_real), 2)
    assert torch.equal(last.visible, whole.visible[:, :, 3:])
    assert torch.equal(last.query_places, whole.query_places[:, 3:])
    assert torch.equal(last.key_places, whole.key_places)


def test_across_sees_every_real_place_of_the_memory() -> None:
    view = View.across(torch.tensor([[4]]), real("xx.", "xxx"))
    assert view.visible[:, 0, 0].tolist() == [[True, True, False], [True] * 3]
    assert view.query_places.tolist() == [[4]]
    assert view.key_places.tolist() == [[0, 1, 1], [0, 1, 2]]


def test_packed_sequences_do_not_see_one_another() -> None:
    view = View.packed(torch.tensor([[1, 1, 2, 2, 2, 0], [1, 1, 1, 1, 1, 1]]))
    assert view.query_places.tolist() == [[0, 1, 0, 1, 2, 0], [0, 1, 2, 3, 4, 5]]
    assert view.key_places.tolist() == view.query_places.tolist()
    assert view.visible[0, 0].int().tolist() == [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0],
        [0, 0, 1, 1, 0, 0],
        [0, 0, 1, 1, 1, 0],
        [0, 0, 0, 0, 0, 0],
    ]
    assert torch.equal(view.visible[1, 0], torch.ones(6, 6, dtype=torch.bool).tril())


def test_rows_of_one_sequence_each_share_one_view() -> None:
    view = View.packed(torch.ones(3, 4, dtype=torch.long))
    assert view.visible.shape == (1, 1, 4, 4)
    assert view.is_triangle
    assert torch.equal(view.visible[0, 0], torch.ones(4, 4, dtype=torch.bool).tril())
    assert view.query_places.tolist() == [[0, 1, 2, 3]]
