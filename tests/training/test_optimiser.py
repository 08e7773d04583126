"""The paper's optimiser and schedule against formulas written out."""

from __future__ import annotations

import math

import pytest
import torch

from cdp.training.engine import BETAS, EPSILON, adamw, cosine_rate


def test_steps_are_adamws_with_the_papers_numbers_and_biases_do_not_decay() -> None:
    """β 0.9/0.98, ε 1e-8, bias-corrected, decay apart from the gradient: three steps, number by number."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 2).double()
    expected = {name: value.detach().clone() for name, value in layer.named_parameters()}
    optimiser = adamw(layer, 0.1, 0.01)
    first = {name: torch.zeros_like(value) for name, value in expected.items()}
    second = {name: torch.zeros_like(value) for name, value in expected.items()}
    for step in (1, 2, 3):
        for name, parameter in layer.named_parameters():
            gradient = torch.randn_like(parameter)
            parameter.grad = gradient
            first[name] = 0.9 * first[name] + 0.1 * gradient
            second[name] = 0.98 * second[name] + 0.02 * gradient**2
            if name == "weight":
                expected[name] *= 1 - 0.1 * 0.01
            root = torch.sqrt(second[name] / (1 - 0.98**step)) + 1e-8
            expected[name] -= 0.1 * first[name] / (1 - 0.9**step) / root
        optimiser.step()
        for name, parameter in layer.named_parameters():
            torch.testing.assert_close(parameter.detach(), expected[name], rtol=1e-12, atol=1e-12)


def test_steps_and_what_is_saved_are_torchs_own_bit_for_bit() -> None:
    torch.manual_seed(0)
    ours, theirs = torch.nn.Linear(3, 2, bias=False), torch.nn.Linear(3, 2, bias=False)
    theirs.load_state_dict(ours.state_dict())
    optimiser = adamw(ours, 0.1, 0.01)
    expected = torch.optim.AdamW(theirs.parameters(), 0.1, BETAS, EPSILON, 0.01, fused=True)
    for _ in range(4):
        theirs.weight.grad = torch.randn_like(theirs.weight)
        ours.weight.grad = theirs.weight.grad.clone()
        optimiser.step()
        expected.step()
        assert torch.equal(ours.weight, theirs.weight)
        saved, own = optimiser.state_dict(), expected.state_dict()
        assert saved["param_groups"] == own["param_groups"]
        assert saved["state"][0].keys() == own["state"][0].keys()
        assert all(torch.equal(value, own["state"][0][name]) for name, value in saved["state"][0].items())
        optimiser = adamw(ours, 0.1, 0.01)
        optimiser.load_state_dict(saved)
        optimiser.zero_grad()
        assert ours.weight.grad is None


def test_what_is_frozen_is_not_optimised() -> None:
    layer = torch.nn.Linear(3, 2)
    layer.weight.requires_grad_(False)
    found = [p for group in adamw(layer, 0.1, 0.01).param_groups for p in group["params"]]
    assert len(found) == 1
    assert found[0] is layer.bias


def test_the_rate_falls_as_a_cosine_from_its_peak_without_warming_up() -> None:
    assert cosine_rate(2e-6, 0, 100) == 2e-6
    assert cosine_rate(2e-6, 50, 100) == pytest.approx(1e-6)
    assert cosine_rate(2e-6, 25, 100) == pytest.approx(1e-6 * (1 + math.sqrt(0.5)))
    rates = [cosine_rate(1.0, step, 100) for step in range(101)]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == pytest.approx(0.0, abs=1e-15)
