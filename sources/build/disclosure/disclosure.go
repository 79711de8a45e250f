// Package disclosure finds out what secret values come out as in an object, once its variables are replaced.
//
// In go an object's content before and after that; out come the texts that show a value, which no message may show.
// It replaces nothing itself, and keeps nothing.
package disclosure

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	envparse "github.com/fluxcd/pkg/envsubst/parse"
)

// Disclosure finds what secret values come out as in objects: as a change of letters, a part, a default around
// them or a number, none of which is the value itself. Of nil there are none.
type Disclosure struct {
	names  map[string]bool
	expand func(text string, limit int) (string, error)
	report func(text string)
}

// New returns the Disclosure of the variables of those names. Expand replaces the variables of a text, and errs if
// that comes to more bytes than the limit; reveal is called with each text that shows a value.
func New(names []string, expand func(text string, limit int) (string, error), report func(text string)) *Disclosure {
	d := &Disclosure{names: map[string]bool{}, expand: expand, report: report}
	for _, name := range names {
		d.names[name] = true
	}
	return d
}

const (
	// leastText is the least length of a text that can be distinguished from common text: a
	// shorter one is reported with all that is around it, too.
	leastText = 4
	// mostText is how large what a variable comes out as may be, in bytes, before the line is looked at.
	mostText = 64 << 10
	// triesAtEnd is how many closing braces may be those of one variable.
	triesAtEnd = 16
	// perLine is how many times the bytes of a line are parsed to find its variables; beyond it, the whole line is revealed.
	perLine = 32
)

// ContainsSecret reports whether a secret variable is in content that its variables are to be replaced in.
func (d *Disclosure) ContainsSecret(content any) bool { return d != nil && d.in(content) }

// Reveal compares an object's content before and after its variables were replaced.
func (d *Disclosure) Reveal(before, after any) {
	if d == nil {
		return
	}
	switch before := before.(type) {
	case string:
		d.revealText(before, after)
	case map[string]any:
		d.revealFields(before, after)
	case []any:
		items, same := after.([]any)
		if !same || len(items) != len(before) {
			d.revealAll(before, after)
			return
		}
		for n := range before {
			d.Reveal(before[n], items[n])
		}
	}
}

func (d *Disclosure) revealFields(before map[string]any, after any) {
	fields, same := after.(map[string]any)
	if !same {
		d.revealAll(before, after)
		return
	}
	for key, value := range before {
		if now, stays := fields[key]; stays {
			d.Reveal(value, now)
		}
	}
	// What came under another name cannot be distinguished, if several did.
	gone := maps.Clone(before)
	maps.DeleteFunc(gone, func(key string, _ any) bool { _, stays := fields[key]; return stays })
	came := maps.Clone(fields)
	maps.DeleteFunc(came, func(key string, _ any) bool { _, was := before[key]; return was })
	if len(gone) == 1 && len(came) == 1 {
		for was, value := range gone {
			for is, now := range came {
				d.revealText(was, is)
				d.Reveal(value, now)
			}
		}
		return
	}
	d.revealAll(gone, came)
}

// revealAll reveals all that is after, if there was a secret variable in what was before.
func (d *Disclosure) revealAll(before, after any) {
	if d.in(before) {
		d.reportAll(after)
	}
}

// revealText reveals what the variables in a text came out as, and the lines around what is too short to be
// known again.
func (d *Disclosure) revealText(before string, after any) {
	if !d.in(before) {
		return
	}
	now, isText := after.(string)
	was, is := strings.Split(before, "\n"), strings.Split(now, "\n")
	if !isText || len(was) != len(is) {
		d.reportParts(before, "") // a number is revealed as it was written, too
		d.reportAll(after)
		return
	}
	for n := range was {
		if d.in(was[n]) && !d.reportParts(was[n], is[n]) {
			d.report(is[n])
		}
	}
}

// in reports whether there is a secret variable in content, or may be.
func (d *Disclosure) in(content any) bool {
	switch content := content.(type) {
	case string:
		if !strings.Contains(content, "${") {
			return false
		}
		root, sound := parsed(content)
		return !sound || d.uses(root)
	case map[string]any:
		for key, value := range content {
			if d.in(key) || d.in(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(content, d.in)
	}
	return false
}

// parsed is what the library makes of a text; it panics on some.
func parsed(text string) (root envparse.Node, sound bool) {
	defer func() {
		if recover() != nil {
			root, sound = nil, false
		}
	}()
	tree, err := envparse.Parse(text)
	if err != nil {
		return nil, false
	}
	return tree.Root, true
}

// uses reports whether a secret variable is in a text as it was parsed.
func (d *Disclosure) uses(node envparse.Node) bool {
	switch node := node.(type) {
	case *envparse.ListNode:
		return slices.ContainsFunc(node.Nodes, d.uses)
	case *envparse.FuncNode:
		return d.names[node.Param] || slices.ContainsFunc(node.Args, d.uses)
	}
	return false
}

// reportParts reports what each variable of a line came out as, and reports whether the line is hidden by that.
func (d *Disclosure) reportParts(line, now string) bool {
	hidden, left := true, perLine*len(line)
	for {
		_, rest, more := strings.Cut(line, "${")
		if !more {
			return hidden
		}
		rest = "${" + rest
		variable, secret := d.variable(rest, &left)
		if variable == "" {
			return false
		}
		line = rest[len(variable):]
		if !secret {
			continue
		}
		part, err := d.expand(variable, max(mostText, 2*len(now)))
		if err != nil {
			hidden = false
			continue
		}
		d.report(part)
		hidden = hidden && len(strings.TrimSpace(part)) >= leastText && strings.Contains(now, part)
	}
}

// variable returns the variable that a text begins with, and whether it is a secret one; empty if that is not to
// be found within what is left of the bytes that may be parsed.
func (d *Disclosure) variable(text string, left *int) (variable string, secret bool) {
	end := 0
	for range triesAtEnd {
		next := strings.IndexByte(text[end:], '}')
		if next < 0 {
			return "", false
		}
		end += next + 1
		if *left -= end; *left < 0 {
			return "", false
		}
		root, sound := parsed(text[:end])
		if f, isVariable := root.(*envparse.FuncNode); sound && isVariable {
			return text[:end], d.uses(f)
		}
	}
	return "", false
}

// reportAll reports every text and number of what was built. What is true or false shows nothing.
func (d *Disclosure) reportAll(content any) {
	switch content := content.(type) {
	case string:
		d.report(content)
	case map[string]any:
		for key, value := range content {
			d.report(key)
			d.reportAll(value)
		}
	case []any:
		for _, item := range content {
			d.reportAll(item)
		}
	case int64:
		d.report(strconv.FormatInt(content, 10))
	case float64:
		d.report(strconv.FormatFloat(content, 'f', -1, 64))
		d.report(strconv.FormatFloat(content, 'g', -1, 64))
		if text, err := json.Marshal(content); err == nil {
			d.report(string(text))
		}
	}
}
