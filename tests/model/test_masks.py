import torch

from manyheads.model.masks import View, count_positions

from model.makers import causal_view, real


def test_positions_count_only_real_tokens() -> None:
    assert count_positions(real("xxx..", "..xxx", "x.x.x", ".....")).tolist() == [
        [0, 1, 2, 2, 2],
        [0, 0, 0, 1, 2],
        [0, 0, 1, 1, 2],
        [0, 0, 0, 0, 0],
    ]


def test_bidirectional_sees_every_real_position() -> None:
    view = View.bidirectional(real("xx.", "..."))
    assert view.visible.shape == (2, 1, 1, 3)
    assert view.visible[:, 0, 0].tolist() == [[True, True, False], [False] * 3]
    assert torch.equal(view.query_positions, view.key_positions)


def test_causal_sees_real_positions_up_to_its_own() -> None:
    assert torch.equal(
        causal_view(real("xxx", ".xx")).visible[:, 0],
        torch.stack([real("x..", "xx.", "xxx"), real("...", ".x.", ".xx")]),
    )


def test_causal_without_padding_stores_no_mask() -> None:
    view = causal_view(real("xxx", "xxx"))
    assert view.is_purely_causal
    assert torch.equal(view.visible[0, 0], real("x..", "xx.", "xxx"))
    assert not causal_view(real("xxx", "xx.")).is_purely_causal


def test_causal_view_of_the_last_positions_equals_the_end_of_the_full_view() -> None:
    is_real = real("xxxxx", "xx.xx")
    whole, last = causal_view(is_real), View.causal(is_real, count_positions(is_real), 2)
    assert torch.equal(last.visible, whole.visible[:, :, 3:])
    assert torch.equal(last.query_positions, whole.query_positions[:, 3:])
    assert torch.equal(last.key_positions, whole.key_positions)


def test_cross_sees_every_real_position_of_the_memory() -> None:
    view = View.cross(torch.tensor([[4]]), real("xx.", "xxx"))
    assert view.visible[:, 0, 0].tolist() == [[True, True, False], [True] * 3]
    assert view.query_positions.tolist() == [[4]]
    assert view.key_positions.tolist() == [[0, 1, 1], [0, 1, 2]]


def test_packed_sequences_do_not_see_each_other() -> None:
    view = View.packed(torch.tensor([[1, 1, 2, 2, 2, 0], [1, 1, 1, 1, 1, 1]]))
    assert view.query_positions.tolist() == [[0, 1, 0, 1, 2, 0], [0, 1, 2, 3, 4, 5]]
    assert view.key_positions.tolist() == view.query_positions.tolist()
    assert view.visible[0, 0].int().tolist() == [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0],
        [0, 0, 1, 1, 0, 0],
        [0, 0, 1, 1, 1, 0],
        [0, 0, 0, 0, 0, 0],
    ]
    assert torch.equal(view.visible[1, 0], torch.ones(6, 6, dtype=torch.bool).tril())


def test_rows_with_one_sequence_each_share_one_view() -> None:
    view = View.packed(torch.ones(3, 4, dtype=torch.long))
    assert view.visible.shape == (1, 1, 4, 4)
    assert view.is_purely_causal
    assert torch.equal(view.visible[0, 0], torch.ones(4, 4, dtype=torch.bool).tril())
    assert view.query_positions.tolist() == [[0, 1, 2, 3]]
