// Command flotilla-agent runs beside one member cluster and keeps it in line with
// its hub: it fetches what the cluster is to run, makes it so, and reports back. It
// needs no way from the hub to the cluster, and goes on for as long as there is no
// hub.
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
