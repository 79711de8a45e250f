package program

import (
	"os"
	"runtime/debug"
	"time"
)

const (
	// garbage is how much garbage there may be beside what lives, in percent: a
	// cluster at the edge has better things to do with its memory.
	garbage = 50
	// giveBack is how often memory that is not used is given back.
	giveBack = 20 * time.Second
)

// thrift has the process use little memory, unless the user has decided otherwise.
// What it returns ends it.
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
