package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// reporting is what is written to a screen besides faults: what somebody who looks on waits for.
var reporting = map[string]bool{
	"Cluster turned":        true,
	"Let go of the cluster": true,
	"stored artifact":       true,
}

// within is how long the same fault is not repeated.
const within = time.Minute

// terse is a handler that shows what matters on a screen, in short lines, besides a log that
// has all.
type terse struct {
	slog.Handler
	screen *screen
	attrs  []slog.Attr
}

// screen is where lines go, and which faults did so lately.
type screen struct {
	out      io.Writer
	mu       sync.Mutex
	reported map[string]time.Time
}

// Enabled implements slog.Handler.
func (t terse) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || t.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (t terse) Handle(ctx context.Context, r slog.Record) error {
	if change := reporting[r.Message]; change || r.Level >= slog.LevelError {
		t.screen.report(r.Time, line(r, t.attrs), change)
	}
	if !t.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return t.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (t terse) WithAttrs(attrs []slog.Attr) slog.Handler {
	t.attrs = append(t.attrs[:len(t.attrs):len(t.attrs)], attrs...)
	t.Handler = t.Handler.WithAttrs(attrs)
	return t
}

// WithGroup implements slog.Handler.
func (t terse) WithGroup(name string) slog.Handler {
	t.Handler = t.Handler.WithGroup(name)
	return t
}

// line is a record for people: what it says, and about what. Others may have written parts of it, which a terminal must not obey.
func line(r slog.Record, attrs []slog.Attr) string {
	var out strings.Builder
	out.WriteString(r.Message)
	object := map[string]string{}
	add := func(a slog.Attr) bool {
		switch value := a.Value.String(); a.Key {
		case "controller", "controllerGroup", "controllerKind", "reconcileID", "logger", "digest", "object":
			return true
		case "namespace", "name":
			object[a.Key] = value
		case "err", "error":
			_, _ = fmt.Fprintf(&out, ": %s", value)
		default:
			if isWord(a.Value) {
				_, _ = fmt.Fprintf(&out, " %s=%s", a.Key, value)
			}
		}
		return true
	}
	for _, a := range attrs {
		add(a)
	}
	r.Attrs(add)
	if object["name"] != "" {
		_, _ = fmt.Fprintf(&out, " (%s)", strings.TrimPrefix(object["namespace"]+"/"+object["name"], "/"))
	}
	return excerpt.Inline(strings.Join(strings.Fields(strings.ToValidUTF8(out.String(), "?")), " "))
}

// isWord reports whether a value is short enough for a screen: a text, whatever type it has of
// its own, a number, or a yes or no.
func isWord(v slog.Value) bool {
	switch v.Kind() {
	case slog.KindString, slog.KindBool, slog.KindInt64:
		return true
	case slog.KindAny:
		return reflect.ValueOf(v.Any()).Kind() == reflect.String
	default:
		return false
	}
}

// report writes a line; a fault, which is no change, only if it was not written lately.
func (s *screen) report(at time.Time, text string, change bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, reported := s.reported[text]; !change && reported && at.Sub(last) < within {
		return
	}
	const most = 256 // a message that is repeated after so many others counts as new
	if s.reported == nil || len(s.reported) >= most {
		s.reported = map[string]time.Time{}
	}
	s.reported[text] = at
	_, _ = fmt.Fprintf(s.out, "%s  %s\n", at.Format(time.TimeOnly), text) // nobody looks: the log has it
}
