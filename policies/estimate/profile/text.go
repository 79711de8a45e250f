package profile

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
	"github.com/flotilla-io/flotilla/policies/estimate/strict"
)

const (
	// MostBytes is how long the text of a profile is at most.
	MostBytes = 32 << 10
	// mostNodes is how many nodes a profile reports at most, and mostNumbers how many
	// numbers their Index has.
	mostNodes   = 20_000
	mostNumbers = 1 << 19
	// mostResources is of how many resources.
	mostResources = 128
)

// ErrFormat says that a text is not that of a profile.
var ErrFormat = errors.New("it is not a profile of nodes")

// Encode returns the text, which is the same for equal profiles.
func (p *Profile) Encode() []byte {
	out, err := json.Marshal(p)
	if err != nil { // plain values always encode
		panic(err)
	}
	return out
}

// Decode reads a text that anybody may have written. It errs with ErrFormat, and takes
// nothing that no cluster has.
func Decode(text []byte) (*Profile, error) {
	out := &Profile{}
	if err := strict.Read(text, MostBytes, out); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if err := out.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return out, nil
}

func (p *Profile) check() error {
	switch {
	case p.Version != Version:
		return fmt.Errorf("its version is %d, and %d is known", p.Version, Version)
	case len(p.Resources) > mostResources:
		return fmt.Errorf("it tells of %d resources, %d is the most", len(p.Resources), mostResources)
	case p.LeftOut < 0:
		return errors.New("leftOut is negative")
	}
	known := map[corev1.ResourceName]bool{}
	for _, name := range p.Resources {
		if known[name] {
			return fmt.Errorf("it names the resource %q twice", name)
		}
		known[name] = true
	}
	for i := range p.Kinds {
		if err := p.Kinds[i].check(len(p.Resources)); err != nil {
			return fmt.Errorf("kinds[%d]: %w", i, err)
		}
	}
	if n := p.Nodes(); n > mostNodes || n*int64(len(p.Resources)) > mostNumbers {
		return fmt.Errorf("it tells of %d nodes and %d resources, which is too much", n, len(p.Resources))
	}
	for i := range p.Quotas {
		if err := p.Quotas[i].check(); err != nil {
			return fmt.Errorf("quotas[%d]: %w", i, err)
		}
	}
	return nil
}

func (k *Kind) check(resources int) error {
	for _, t := range k.Taints {
		if t.Effect != corev1.TaintEffectNoSchedule && t.Effect != corev1.TaintEffectNoExecute {
			return fmt.Errorf("the taint %s has the effect %q", t.Key, t.Effect)
		}
	}
	for _, row := range k.Rows {
		if len(row) != resources+1 {
			return fmt.Errorf("a row has %d numbers, of %d resources", len(row), resources)
		}
		if row[0] < 1 || row[0] > mostNodes {
			return fmt.Errorf("there are %d nodes in a row", row[0])
		}
		for _, n := range row[1:] {
			if err := checkFree(n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (q *Quota) check() error {
	for _, n := range q.Free {
		if err := checkFree(n); err != nil {
			return err
		}
	}
	for _, s := range q.Scopes {
		switch s.Operator {
		case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn, corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
		default:
			return fmt.Errorf("a scope has the operator %q", s.Operator)
		}
	}
	return nil
}

func checkFree(n int64) error {
	if n < 0 || n > nodes.Largest {
		return fmt.Errorf("%d is free", n)
	}
	return nil
}
