// Command flotilla-agent runs beside one member cluster and keeps it in sync with its hub:
// it fetches what the cluster should run, applies it, and reports back. The hub needs no
// connection to the cluster, and the agent keeps working while the hub is away.
//
// In go two kubeconfigs and a name; out come objects in the member, and statuses on
// the hub. SIGTERM stops it cleanly.
package main

import (
	"os"

	"github.com/flotilla-io/flotilla/cmd/flotilla-agent/program"
)

// version is set by the linker.
var version string

func main() {
	os.Exit(program.Run(version))
}
