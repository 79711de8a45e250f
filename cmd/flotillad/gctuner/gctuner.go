// Package gctuner lets a process whose heap is small collect garbage less
// often: collecting whenever a small heap has doubled costs a busy server a
// fifth of its CPU and saves little memory. At rest it gives back what a burst has taken.
//
// In goes how much memory garbage may take; out comes nothing. The package acts
// on the whole process, so only a program's main may use it.
package gctuner

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

const (
	// least is Go's own share of garbage in relation to what lives, in percent.
	least = 100
	// most keeps a nearly empty heap from growing for long without a look.
	most = 400
	// coarse is by how much, in percent, a setting must be off to be changed.
	coarse = 10
)

// liveBytes is the metric of what the last collection left.
const liveBytes = "/gc/heap/live:bytes"

// Tune lets garbage grow to the given bytes, or to the size of what lives if
// that is more, before it is collected. After each collection it looks again.
// Where GOGC is set, the user has decided and nothing is done. What it returns
// ends it, and sets what was set before.
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

// token is garbage from the start: that it is collected says that a collection
// was. It must not share its memory with other small values.
type token struct{ _ [64]byte }

// adjust sets the share by what lives now, and again after the next collection.
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

// percent is the share of garbage that may grow beside what lives.
func percent(live, garbage uint64) int {
	if live == 0 || garbage/live >= most/100 {
		return most
	}
	return max(least, int(garbage*100/live)) //nolint:gosec // under most, see above
}
