"""The DP3 policy: an encoder of the observations, and a diffusion U-Net that makes the actions."""

import torch
import torch.nn.functional as F
from common.noise import add_noise, cosine_signal
from torch import nn

from action_unet import ActionUnet
from encoders import PointNet, Uni3d


class ObservationEncoder(nn.Module):
    """The features of one cloud and of the robot's own state, side by side."""

    def __init__(self, policy, state):
        super().__init__()
        features = policy.encoder_output_dim
        if policy.pointnet_type == "pointnet":
            self.cloud = PointNet(features)
        else:
            self.cloud = Uni3d(policy.pointcloud_encoder_cfg, features)
        self.state = nn.Sequential(nn.Linear(state, 64), nn.ReLU(), nn.Linear(64, 64))
        self.features = features + 64

    def forward(self, clouds, states):
        return torch.cat((self.cloud(clouds), self.state(states)), dim=-1)


class Dp3(nn.Module):
    """Learns to predict clean actions from noisy ones and the last `n_obs_steps` observations."""

    def __init__(self, config):
        super().__init__()
        policy, shapes = config.policy, config.shape_meta
        self.observed = config.n_obs_steps
        self.encoder = ObservationEncoder(policy, shapes.obs.agent_pos.shape[0])
        self.unet = ActionUnet(
            shapes.action.shape[0],
            self.observed * self.encoder.features,
            policy.down_dims,
            policy.diffusion_step_embed_dim,
            policy.kernel_size,
            policy.n_groups,
        )
        self.diffusion_steps = policy.noise_scheduler.num_train_timesteps
        self.register_buffer("signal", cosine_signal(self.diffusion_steps), persistent=False)

    def condition(self, batch):
        """The observed steps of all samples are clouds of one large batch: batch x n_obs_steps."""
        clouds = batch["point_cloud"][:, : self.observed].flatten(0, 1)
        states = batch["agent_pos"][:, : self.observed].flatten(0, 1)
        return self.encoder(clouds, states).reshape(len(batch["action"]), -1)

    def loss(self, batch):
        """The squared error of the actions that are predicted at a random diffusion step."""
        actions = batch["action"]
        steps = torch.randint(self.diffusion_steps, (len(actions),), device=actions.device)
        noisy = add_noise(actions, self.signal, steps, torch.randn_like(actions))
        predicted = self.unet(noisy, steps, self.condition(batch))
        return F.mse_loss(predicted, actions, reduction="none").mean(dim=(1, 2)).mean()
