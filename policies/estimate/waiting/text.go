package waiting

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/flotilla-io/flotilla/policies/estimate/strict"
)

const (
	// MostBytes is how long the text of a List is at most.
	MostBytes = 16 << 10
	// mostWorkloads is how many it reports at most.
	mostWorkloads = 256
	// latest is the last second that a time can have.
	latest = 1 << 40
)

// ErrFormat says that a text is not that of a List.
var ErrFormat = errors.New("it is not a list of what waits")

// Encode returns the text, which is the same for equal lists.
func (l *List) Encode() []byte { return []byte(textOf(l)) }

func textOf(v any) string {
	out, err := json.Marshal(v)
	if err != nil { // plain values always encode
		panic(err)
	}
	return string(out)
}

// Decode reads a text that anybody may have written. It errs with ErrFormat.
func Decode(text []byte) (*List, error) {
	out := &List{}
	if err := strict.Read(text, MostBytes, out); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if err := out.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return out, nil
}

func (l *List) check() error {
	switch {
	case l.Version != Version:
		return fmt.Errorf("its version is %d, and %d is known", l.Version, Version)
	case len(l.Workloads) > mostWorkloads:
		return fmt.Errorf("it tells of %d workloads, %d is the most", len(l.Workloads), mostWorkloads)
	case l.LeftOut < 0:
		return errors.New("leftOut is negative")
	}
	known := map[key]bool{}
	for i := range l.Workloads {
		w := &l.Workloads[i]
		if known[w.key()] {
			return fmt.Errorf("workloads[%d]: it tells of it twice", i)
		}
		known[w.key()] = true
		if err := w.check(); err != nil {
			return fmt.Errorf("workloads[%d]: %w", i, err)
		}
	}
	return nil
}

func (w *Workload) check() error {
	switch {
	case w.Kind == "" || w.Name == "":
		return errors.New("it has no kind or no name")
	case len(w.Rows) == 0 || len(w.Rows) > mostRows:
		return fmt.Errorf("it has %d rows, 1 to %d are possible", len(w.Rows), mostRows)
	}
	last := int64(-1)
	for _, row := range w.Rows {
		switch {
		case len(row) != 2:
			return fmt.Errorf("a row has %d numbers", len(row))
		case row[0] <= last || row[0] > latest:
			return fmt.Errorf("something waits since %d, after %d", row[0], last)
		case row[1] < 1 || row[1] > math.MaxInt32:
			return fmt.Errorf("%d replicas wait in a row", row[1])
		}
		last = row[0]
	}
	return nil
}
