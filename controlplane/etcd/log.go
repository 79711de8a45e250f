package etcd

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// faults passes the errors that etcd logs on to a logger. After a fatal line etcd ends the
// process, so the log must contain the reason.
type faults struct {
	zapcore.LevelEnabler
	log logr.Logger
	dir string
	// stopping is true while the store is being stopped. Errors that do not end the process
	// are then dropped.
	stopping *atomic.Bool
	with     []zapcore.Field
}

// newLog returns etcd's logger for a store in a folder.
func newLog(log logr.Logger, dir string, stopping *atomic.Bool) *zap.Logger {
	return zap.New(&faults{LevelEnabler: zapcore.ErrorLevel, log: log, dir: dir, stopping: stopping})
}

// With implements zapcore.Core.
func (f *faults) With(fields []zapcore.Field) zapcore.Core {
	out := *f
	out.with = append(append([]zapcore.Field(nil), f.with...), fields...)
	return &out
}

// Check implements zapcore.Core.
func (f *faults) Check(entry zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !f.Enabled(entry.Level) || f.stopping.Load() && entry.Level == zapcore.ErrorLevel {
		return to
	}
	return to.AddCore(entry, f)
}

// Write implements zapcore.Core.
func (f *faults) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	encoder := zapcore.NewMapObjectEncoder()
	for _, field := range append(append([]zapcore.Field(nil), f.with...), fields...) {
		field.AddTo(encoder)
	}
	var cause error
	if text, ok := encoder.Fields["error"]; ok {
		cause = fmt.Errorf("%v", text)
	}
	message := "The store: " + entry.Message
	if cause != nil && strings.Contains(cause.Error(), empty) {
		f.log.V(1).Info(message, "dir", f.dir, "reason", cause.Error())
		return nil
	}
	if entry.Level >= zapcore.PanicLevel {
		message = "The store cannot go on, and the process ends: " + entry.Message
	}
	f.log.Error(cause, message, "dir", f.dir)
	return nil
}

// empty is part of the error that etcd, which checks every 4 s, logs about a new store until
// the first entry is written. On a slow machine that is normal.
const empty = "missing term information"

// Sync implements zapcore.Core.
func (f *faults) Sync() error { return nil }
