"""Proximal policy optimization: rollouts are kept on the GPU, then several passes over parts of them."""

import torch
from torch import nn
from torch.distributions import Categorical

STEPS, ACTORS, ACTIONS = 16, 16, 6


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(
            nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(),
            nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 7 * 7, 512), nn.ReLU(),
        )  # fmt: skip
        self.actor, self.critic = nn.Linear(512, ACTIONS), nn.Linear(512, 1)

    def get_value(self, x):
        return self.critic(self.network(x / 255.0))

    def get_action_and_value(self, x, action=None):
        hidden = self.network(x / 255.0)
        choice = Categorical(logits=self.actor(hidden))
        action = choice.sample() if action is None else action
        return action, choice.log_prob(action), choice.entropy(), self.critic(hidden)


device = torch.device("cuda")
agent = Agent().to(device)
optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
observations = torch.zeros((STEPS, ACTORS, 4, 84, 84), device=device)
actions, log_probs, values = (torch.zeros((STEPS, ACTORS), device=device) for _ in range(3))
for _ in range(2):
    for step in range(STEPS):
        observations[step] = torch.rand(ACTORS, 4, 84, 84).to(device)
        with torch.no_grad():
            action, log_prob, _, value = agent.get_action_and_value(observations[step])
        actions[step], log_probs[step], values[step] = action, log_prob, value.flatten()
    with torch.no_grad():
        returns = values + agent.get_value(observations[-1]).reshape(1, -1)
    flat = observations.reshape((-1, 4, 84, 84))
    order = torch.randperm(STEPS * ACTORS)
    for part in order.split(128):
        part = part.to(device)
        _, new, entropy, value = agent.get_action_and_value(flat[part], actions.reshape(-1)[part].long())
        ratio = (new - log_probs.reshape(-1)[part]).exp()
        gain = returns.reshape(-1)[part] - values.reshape(-1)[part]
        policy = torch.max(-gain * ratio, -gain * torch.clamp(ratio, 0.8, 1.2)).mean()
        loss = policy - 0.01 * entropy.mean() + 0.5 * ((value.flatten() - returns.reshape(-1)[part]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
