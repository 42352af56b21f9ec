//! The protocol's side: who we are, which tools there are, and that a call is cancelled.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::tools;

/// What an agent should know before it calls anything.
const INSTRUCTIONS: &str = "\
Fathom measures the GPU memory of PyTorch training scripts without a GPU: the unmodified script runs on a simulated one, \
with PyTorch's own allocator and autograd. Measure before you claim: `run` says where the memory goes and whether it fits, \
`ask` checks one claim (a trial costs seconds), `fit` finds changes that make it fit, each tried. Numbers say how they are \
known. Losses that the script prints are not real, since kernels do not run. Commands run as you pass them, in the folder \
that you name.";

/// The server has no state: each call is its own command.
pub(super) struct Server;

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        config.server_info = Implementation::new("fathom", env!("CARGO_PKG_VERSION"));
        config.with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult { tools: tools::all(), ..ListToolsResult::default() })
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        Ok(tools::call(&request.name, arguments, &context).await.into())
    }
}
