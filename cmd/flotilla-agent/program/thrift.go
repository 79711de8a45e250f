package program

import (
	"os"
	"runtime/debug"
	"time"
)

const (
	// garbage is how large garbage may grow in percent of the live heap: memory is scarce
	// in clusters at the edge.
	garbage = 50
	// giveBack is how often unused memory is returned to the system.
	giveBack = 20 * time.Second
)

// thrift makes the process use little memory. It leaves the garbage collector's setting alone
// if the user has set GOGC. stop ends it.
func thrift() (stop func()) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	ticker, done := time.NewTicker(giveBack), make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				debug.FreeOSMemory()
				unloadProgram()
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
	}
}
