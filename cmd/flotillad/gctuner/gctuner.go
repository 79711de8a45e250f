// Package gctuner makes a process with a small heap collect garbage less often: collecting
// whenever a small heap has doubled costs a busy server a fifth of its CPU and saves little
// memory. It also returns the memory of a burst to the system when the process is idle.
//
// In goes how much memory garbage may take; out comes nothing. The package acts on the
// whole process, so only a program's main may use it.
package gctuner

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

const (
	// least is Go's own default for garbage in percent of the live heap.
	least = 100
	// most makes sure that a nearly empty heap is collected, and measured, soon enough.
	most = 400
	// coarse is by how many percent the wanted setting must differ for a change.
	coarse = 10
)

// liveBytes is the metric of the live heap after the last collection.
const liveBytes = "/gc/heap/live:bytes"

// Tune lets garbage grow to the given number of bytes, or to the size of the live heap if
// that is more, before it is collected. It adjusts the setting after each collection. If the
// user has set GOGC, it does nothing. stop ends it and restores the setting from before.
func Tune(bytes uint64) (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	t := &tuner{bytes: bytes, set: least}
	before := debug.SetGCPercent(least)
	t.adjust()
	return func() {
		t.stopped.Store(true)
		debug.SetGCPercent(before)
	}
}

type tuner struct {
	bytes   uint64
	set     int
	stopped atomic.Bool
}

// token is garbage from the start, so its cleanup runs after the next collection. It must not
// share its memory with other small values.
type token struct{ _ [64]byte }

// adjust sets the share by the current live heap, and again after the next collection.
func (t *tuner) adjust() {
	if t.stopped.Load() {
		return
	}
	sample := []metrics.Sample{{Name: liveBytes}}
	metrics.Read(sample)
	if want := percent(sample[0].Value.Uint64(), t.bytes); want*100 > t.set*(100+coarse) || want*100 < t.set*(100-coarse) {
		t.set = want
		debug.SetGCPercent(want)
	}
	runtime.AddCleanup(&token{}, func(t *tuner) { t.adjust() }, t)
}

// percent returns the share of garbage for a live heap, between least and most.
func percent(live, garbage uint64) int {
	if live == 0 || garbage/live >= most/100 {
		return most
	}
	return max(least, int(garbage*100/live)) //nolint:gosec // under most, see above
}
