// Package disclosure finds out as which texts secret values appear in an object
// once its variables are replaced.
//
// In go an object's content before and after that; out come the texts that show a
// value, so that no message shows them. It replaces nothing itself, and keeps
// nothing.
package disclosure

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	envparse "github.com/fluxcd/pkg/envsubst/parse"
)

// Disclosure finds the texts that show secret values in objects. A value may
// appear with its case changed, in part, with a default around it, or as a
// number, none of which is the value itself. A nil Disclosure finds none.
type Disclosure struct {
	names  map[string]bool
	expand func(text string, limit int) (string, error)
	report func(text string)
}

// New returns a Disclosure for the variables of the given names. expand replaces
// the variables of a text, and returns an error if the result is larger than
// limit, in bytes; report is called with each text that shows a value.
func New(names []string, expand func(text string, limit int) (string, error), report func(text string)) *Disclosure {
	d := &Disclosure{names: map[string]bool{}, expand: expand, report: report}
	for _, name := range names {
		d.names[name] = true
	}
	return d
}

const (
	// leastText is how long a text has to be to be distinguishable from common
	// text; a shorter one is reported with all that is around it, too.
	leastText = 4
	// mostText is how large the result for a variable may be, in bytes, unless
	// twice the length of its line is more.
	mostText = 64 << 10
	// triesAtEnd is how many closing braces are tried as the end of one variable.
	triesAtEnd = 16
	// perLine is how many times the bytes of a line may be parsed to find its
	// variables; after that, the whole line is reported.
	perLine = 32
)

// ContainsSecret reports whether content has a secret variable, before variables
// are replaced.
func (d *Disclosure) ContainsSecret(content any) bool { return d != nil && d.in(content) }

// Reveal compares an object's content before and after its variables were
// replaced, and reports the texts that show secret values.
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
	// One key that was replaced can be matched with its result; several cannot.
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

// revealAll reports everything in after, if before has a secret variable.
func (d *Disclosure) revealAll(before, after any) {
	if d.in(before) {
		d.reportAll(after)
	}
}

// revealText reports the results of the secret variables in a text, and the whole
// line where a result is too short to be recognised.
func (d *Disclosure) revealText(before string, after any) {
	if !d.in(before) {
		return
	}
	now, isText := after.(string)
	was, is := strings.Split(before, "\n"), strings.Split(now, "\n")
	if !isText || len(was) != len(is) {
		d.reportParts(before, "") // a number is also reported as it was written
		d.reportAll(after)
		return
	}
	for n := range was {
		if d.in(was[n]) && !d.reportParts(was[n], is[n]) {
			d.report(is[n])
		}
	}
}

// in reports whether content has a secret variable, or may have one.
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

// parsed returns a parsed text; sound is false where the library refuses it, or
// panics.
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

// uses reports whether a parsed text has a secret variable.
func (d *Disclosure) uses(node envparse.Node) bool {
	switch node := node.(type) {
	case *envparse.ListNode:
		return slices.ContainsFunc(node.Nodes, d.uses)
	case *envparse.FuncNode:
		return d.names[node.Param] || slices.ContainsFunc(node.Args, d.uses)
	}
	return false
}

// reportParts reports the result of each secret variable in a line. It returns
// whether hiding these results hides everything secret in the line.
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

// variable returns the variable with which a text begins, and whether it is a
// secret one; empty if it cannot be found by parsing at most left bytes.
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

// reportAll reports every text and number in content. Booleans show nothing.
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
