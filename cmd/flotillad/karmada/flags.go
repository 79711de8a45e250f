package karmada

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Component is one of Karmada's programs.
type Component string

// The components, as the page names them.
const (
	manager     Component = "controller manager"
	scheduler   Component = "scheduler"
	descheduler Component = "descheduler"
	estimator   Component = "estimator"
	apiserver   Component = "aggregated API server"
	webhook     Component = "webhook"
	search      Component = "search"
	adapter     Component = "metrics adapter"
	agent       Component = "agent"
)

// effect is what a flag does here.
type effect int

const (
	// works means that the program has the flag itself.
	works effect = iota
	// idle means that it is accepted and changes nothing.
	idle
	// refused means that it is an error to set it.
	refused
)

// Flag is a flag of one or more components.
type Flag struct {
	Name string
	// Of are the components that have it.
	Of []Component
	// effect and Here describe what it does, why it does nothing, or what to use instead.
	effect effect
	Here   string
	// kind is the type of its value.
	kind kind
	// oneOf are the allowed values; empty means any of its kind.
	oneOf []string
}

// kind is pflag's name for the type of a flag's value.
type kind string

const (
	text     kind = "string"
	list     kind = "stringSlice"
	boolean  kind = "bool"
	integer  kind = "int"
	number   kind = "float64"
	duration kind = "duration"
)

// Add adds to a program's flags, hidden, those of Karmada that the program does not have.
// unused returns, after parsing, the flags without effect that were set, each with the
// reason, sorted.
func Add(flags *pflag.FlagSet) (unused func() []string) {
	var silent []Flag
	for _, f := range all() {
		if flags.Lookup(f.Name) != nil {
			continue
		}
		if f.effect == idle {
			silent = append(silent, f)
		}
		flags.AddFlag(f.flag())
	}
	return func() (set []string) {
		for _, f := range silent {
			if flags.Changed(f.Name) {
				set = append(set, fmt.Sprintf("--%s (%s)", f.Name, f.Here))
			}
		}
		slices.Sort(set)
		return set
	}
}

// Own returns the names of the flags that work, which a program must have itself.
func Own() (names []string) {
	for _, f := range all() {
		if f.effect == works {
			names = append(names, f.Name)
		}
	}
	return names
}

// flag returns a hidden flag for one that the program does not have.
func (f Flag) flag() *pflag.Flag {
	out := &pflag.Flag{Name: f.Name, Usage: f.Here, Hidden: true}
	switch f.effect {
	case idle:
		out.Value = f.checked()
	case refused:
		out.Value = refusal(f.Here)
	default:
		out.Value = refusal("it is a flag of flotillad serve")
	}
	if f.kind == boolean {
		out.NoOptDefVal = "true"
	}
	return out
}

// checked returns a value that is validated and not used.
func (f Flag) checked() pflag.Value {
	scratch := pflag.NewFlagSet("", pflag.ContinueOnError)
	switch f.kind {
	case list:
		scratch.StringSlice(f.Name, nil, "")
	case boolean:
		scratch.Bool(f.Name, false, "")
	case integer:
		scratch.Int(f.Name, 0, "")
	case number:
		scratch.Float64(f.Name, 0, "")
	case duration:
		scratch.Duration(f.Name, 0, "")
	default:
		scratch.String(f.Name, "", "")
	}
	value := scratch.Lookup(f.Name).Value
	if len(f.oneOf) > 0 {
		return choice{value, f.oneOf}
	}
	return value
}

// choice is a value that must be one of a few.
type choice struct {
	pflag.Value
	oneOf []string
}

// Set returns an error for a value that is not in oneOf.
func (c choice) Set(value string) error {
	if !slices.Contains(c.oneOf, value) {
		return fmt.Errorf("use %s", strings.Join(c.oneOf, " or "))
	}
	return c.Value.Set(value)
}

// refusal is the value of a flag that cannot be set. Its text is the reason.
type refusal string

// Set returns an error with the reason.
func (r refusal) Set(string) error { return errors.New(string(r)) }
func (refusal) String() string     { return "" }

// Type returns pflag's name for a string.
func (refusal) Type() string { return string(text) }
