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

// effect is what becomes of a flag.
type effect int

const (
	// works: the program has the flag itself.
	works effect = iota
	// idle: it is taken, and changes nothing.
	idle
	// refused: it is an error to set it.
	refused
)

// Flag is a flag of one or more components.
type Flag struct {
	Name string
	// Of are the components that have it.
	Of []Component
	// Effect and Here are what becomes of it: what it does, why it does nothing, or
	// what to use instead.
	effect effect
	Here   string
	// kind is what its value must be, of those without effect.
	kind kind
	// oneOf are the values that there are; empty: any of its kind.
	oneOf []string
}

// kind is the type of a flag's value, by pflag's name of it.
type kind string

const (
	text     kind = "string"
	list     kind = "stringSlice"
	boolean  kind = "bool"
	integer  kind = "int"
	number   kind = "float64"
	duration kind = "duration"
)

// Add adds to a program's flags what Karmada has and the program has not, hidden. What
// it returns logs afterwards which flags without effect were set, each with the
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

// Own lists the flags that a program must have itself: those that work.
func Own() (names []string) {
	for _, f := range all() {
		if f.effect == works {
			names = append(names, f.Name)
		}
	}
	return names
}

// flag is what stands for a flag that the program has not.
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

// checked is a value that is looked at, and kept for nothing.
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

// choice is a value out of a few.
type choice struct {
	pflag.Value
	oneOf []string
}

// Set errs on a value that is not among them.
func (c choice) Set(value string) error {
	if !slices.Contains(c.oneOf, value) {
		return fmt.Errorf("use %s", strings.Join(c.oneOf, " or "))
	}
	return c.Value.Set(value)
}

// refusal is the value of a flag that cannot be set: the reason.
type refusal string

// Set errs with the reason.
func (r refusal) Set(string) error { return errors.New(string(r)) }
func (refusal) String() string     { return "" }

// Type is the name of the values' type.
func (refusal) Type() string { return string(text) }
