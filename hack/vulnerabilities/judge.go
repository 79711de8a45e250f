package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// vulnerability is one that the scanner found in code that is linked into
// programs. What is only required, or only imported, is none.
type vulnerability struct {
	id, summary     string
	module, version string
	fixed           string // version of the module without it; empty: there is none
	symbols         []string
	programs        []string
}

// message is what matters of one message of the scanner.
type message struct {
	OSV *struct {
		ID      string `json:"id"`
		Summary string `json:"summary"`
	} `json:"osv"`
	Finding *struct {
		OSV          string  `json:"osv"`
		FixedVersion string  `json:"fixed_version"`
		Trace        []frame `json:"trace"`
	} `json:"finding"`
}

// frame is where a vulnerability is. Function is empty where its module is
// required, or its package imported, and nothing of it is linked.
type frame struct {
	Module   string `json:"module"`
	Version  string `json:"version"`
	Package  string `json:"package"`
	Function string `json:"function"`
	Receiver string `json:"receiver"`
}

func (f frame) symbol() string {
	if f.Receiver != "" {
		return f.Package + "." + strings.TrimPrefix(f.Receiver, "*") + "." + f.Function
	}
	return f.Package + "." + f.Function
}

// parse reads the scanner's messages about a program.
func parse(r io.Reader, program string) ([]vulnerability, error) {
	summaries := map[string]string{}
	var found []vulnerability
	for decoder := json.NewDecoder(r); ; {
		var m message
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if m.OSV != nil {
			summaries[m.OSV.ID] = m.OSV.Summary
		}
		if m.Finding == nil || len(m.Finding.Trace) == 0 || m.Finding.Trace[0].Function == "" {
			continue
		}
		at := m.Finding.Trace[0]
		found = merge(found, []vulnerability{{
			id: m.Finding.OSV, module: at.Module, version: at.Version, fixed: m.Finding.FixedVersion,
			symbols: []string{at.symbol()}, programs: []string{program},
		}})
	}
	for i := range found {
		found[i].summary = summaries[found[i].id]
	}
	return found, nil
}

// merge joins what was found here and there, in the order of ids and modules.
func merge(all, more []vulnerability) []vulnerability {
	for _, v := range more {
		i, there := slices.BinarySearchFunc(all, v, func(a, b vulnerability) int {
			return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.module, b.module))
		})
		if !there {
			all = slices.Insert(all, i, v)
			continue
		}
		all[i].symbols = union(all[i].symbols, v.symbols)
		all[i].programs = union(all[i].programs, v.programs)
	}
	return all
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// exception says why a vulnerability does not reach us.
type exception struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
	// Until is the last day that it counts, as 2006-01-02.
	Until string `json:"until"`

	last time.Time
}

// parseExceptions reads a file of exceptions. One without an id, a reason or a day is an
// error, and so are two for the same vulnerability.
func parseExceptions(content []byte) ([]exception, error) {
	var file struct {
		Exceptions []exception `json:"exceptions"`
	}
	if err := yaml.UnmarshalStrict(content, &file); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i := range file.Exceptions {
		e := &file.Exceptions[i]
		if e.ID == "" || strings.TrimSpace(e.Reason) == "" {
			return nil, fmt.Errorf("exception %d (%q) needs an id and a reason", i+1, e.ID)
		}
		if seen[e.ID] {
			return nil, fmt.Errorf("%s is there twice", e.ID)
		}
		seen[e.ID] = true
		var err error
		if e.last, err = time.Parse(time.DateOnly, e.Until); err != nil {
			return nil, fmt.Errorf("until when %s is excepted: %w", e.ID, err)
		}
	}
	return file.Exceptions, nil
}

// verdict is what came of all programs.
type verdict struct {
	open    []vulnerability // not excepted, or not any more
	excused []vulnerability
	expired map[string]exception // of those that are open
	reasons map[string]exception // of those that are excused
	idle    []string             // exceptions of what nothing has any more
}

func judge(all []vulnerability, list []exception, today time.Time) verdict {
	v := verdict{expired: map[string]exception{}, reasons: map[string]exception{}}
	for _, found := range all {
		i := slices.IndexFunc(list, func(e exception) bool { return e.ID == found.id })
		switch {
		case i < 0:
			v.open = append(v.open, found)
		case today.Before(list[i].last.AddDate(0, 0, 1)):
			v.excused = append(v.excused, found)
			v.reasons[found.id] = list[i]
		default:
			v.open = append(v.open, found)
			v.expired[found.id] = list[i]
		}
	}
	for _, e := range list {
		if !slices.ContainsFunc(all, func(found vulnerability) bool { return found.id == e.ID }) {
			v.idle = append(v.idle, e.ID)
		}
	}
	return v
}

// String is one paragraph for each vulnerability, the open ones first, and a
// line in the end.
func (v verdict) String() string {
	var b strings.Builder
	for _, found := range v.open {
		found.write(&b)
		if e, ok := v.expired[found.id]; ok {
			fmt.Fprintf(&b, "  excepted until %s: %s\n", e.Until, e.Reason)
		}
	}
	for _, found := range v.excused {
		e := v.reasons[found.id]
		fmt.Fprintf(&b, "%s is excepted until %s: %s\n", found.id, e.Until, e.Reason)
	}
	for _, id := range v.idle {
		fmt.Fprintf(&b, "%s is excepted, and nothing has it: take the exception out\n", id)
	}
	fmt.Fprintf(&b, "known vulnerabilities: %d, excepted: %d\n", len(v.open), len(v.excused))
	return b.String()
}

func (v vulnerability) write(b *strings.Builder) {
	fixed := "there is no version without it"
	if v.fixed != "" {
		fixed = "fixed in " + v.fixed
	}
	fmt.Fprintf(b, "%s: %s\n  %s %s, %s; in %s\n", v.id, v.summary, v.module, v.version, fixed, strings.Join(v.programs, ", "))
	const most = 5
	for _, symbol := range v.symbols[:min(most, len(v.symbols))] {
		fmt.Fprintf(b, "  %s\n", symbol)
	}
	if more := len(v.symbols) - most; more > 0 {
		fmt.Fprintf(b, "  and %d more\n", more)
	}
}
