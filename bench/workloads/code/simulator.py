"""Reinforcement learning: an environment in Python between the steps of the policy."""

from __future__ import annotations

from typing import Any


class CartPole:
    def __init__(self) -> None:
        self.x = self.speed = self.angle = self.turn = 0.0

    def step(self, force: float) -> float:
        push = (force + 0.05 * self.turn**2) / 1.1  # guilty
        fall = (9.8 * self.angle - push) / 0.65  # guilty
        self.x += 0.02 * self.speed  # guilty
        self.speed += 0.02 * (push - 0.04 * fall)  # guilty
        self.angle += 0.02 * self.turn  # guilty
        self.turn += 0.02 * fall if abs(self.angle) < 0.2 else -self.turn  # guilty
        return 1.0 if abs(self.x) < 2.4 else 0.0  # guilty


def rollout(world: CartPole, steps: int) -> float:
    return sum(world.step(1.0 if at % 3 else -1.0) for at in range(steps))  # guilty


def main(gpu: Any, guilty: Any) -> None:
    world = CartPole()
    for _ in gpu.steps():
        gpu.step().item()
        with guilty:
            rollout(world, 100_000)
