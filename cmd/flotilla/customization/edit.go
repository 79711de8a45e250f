package customization

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
)

// remark begins a line for the person who edits. Such a line is dropped when the text is
// read, unless it is inside a script and not one of ours.
const remark = "--! "

// fault begins a remark about an error.
const fault = "error: "

// marker begins the script of an operation.
var marker = regexp.MustCompile(`^----* *\[(\w+)\] *-*\s*$`)

// Document returns the scripts of a customization as one Lua text to edit, with a marker
// before each, and with the documentation of each function if docs is set.
func Document(c *configv1alpha1.ResourceInterpreterCustomization, docs bool) string {
	var out strings.Builder
	say := func(format string, args ...any) { out.WriteString(remark + fmt.Sprintf(format, args...) + "\n") }
	say("The scripts of ResourceInterpreterCustomization %s, about %s of %s.", c.Name, c.Spec.Target.Kind, c.Spec.Target.APIVersion)
	say("Each stands below the line with its operation; an empty one is none. Leave these")
	say("lines as they are. To give up, empty the file or change nothing.")
	for _, o := range operations {
		fmt.Fprintf(&out, "\n---- [%s] ----\n", o.Name)
		if docs {
			for _, line := range o.Doc {
				say("%s", line)
			}
		}
		if given := *o.script(&c.Spec.Customizations); given != nil {
			out.WriteString(strings.TrimRight(given.LuaScript, "\n") + "\n")
		}
	}
	return out.String()
}

// Again returns an edited text to be edited again, with its errors on top.
func Again(text string, wrong []string) string {
	var out strings.Builder
	for _, w := range wrong {
		out.WriteString(remark + fault + w + "\n")
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, remark+fault) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// ErrGivenUp means that the edited text is empty.
var ErrGivenUp = errors.New("the file is empty: nothing was changed")

// Scripts reads the edited text of Document. Scripts that differ from before only in
// white space at the end of lines or of the script stay as they were.
//
// It returns ErrGivenUp, or an error about a line outside the scripts or with an unknown
// operation.
func Scripts(text string, before configv1alpha1.CustomizationRules) (configv1alpha1.CustomizationRules, error) {
	var out configv1alpha1.CustomizationRules
	bodies := map[string]*strings.Builder{}
	var body *strings.Builder
	empty := true
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		found := marker.FindStringSubmatch(line)
		switch {
		case body == nil && strings.HasPrefix(line, strings.TrimSpace(remark)), ours(line):
		case found != nil:
			o, err := Find(found[1])
			if err != nil {
				return out, fmt.Errorf("line %d: %w", number, err)
			}
			if bodies[string(o.Name)] != nil {
				return out, fmt.Errorf("line %d: %s is there twice", number, o.Name)
			}
			body = &strings.Builder{}
			bodies[string(o.Name)] = body
		case body != nil:
			body.WriteString(strings.TrimRight(line, " \t") + "\n")
			empty = empty && strings.TrimSpace(line) == ""
		case strings.TrimSpace(line) != "":
			return out, fmt.Errorf("line %d: is in no script: it belongs below the line of an operation", number)
		}
	}
	if empty {
		return out, ErrGivenUp
	}
	for _, o := range operations {
		b := bodies[string(o.Name)]
		if b == nil || strings.TrimSpace(b.String()) == "" {
			continue
		}
		edited := &configv1alpha1.CustomizationScript{LuaScript: strings.Trim(b.String(), "\n") + "\n"}
		if old := *o.script(&before); old != nil && trimmed(old.LuaScript) == trimmed(edited.LuaScript) {
			edited = old
		}
		*o.script(&out) = edited
	}
	return out, nil
}

// ours reports whether a line is a remark of Document that may stand in a script:
// lines of a script that only look like one are part of it.
func ours(line string) bool {
	text, ok := strings.CutPrefix(line, remark)
	return ok && slices.ContainsFunc(operations, func(o Operation) bool { return slices.Contains(o.Doc, text) })
}

// trimmed returns a script without trailing white space in lines and without empty lines
// around it.
func trimmed(script string) string {
	var out strings.Builder
	for line := range strings.Lines(script) {
		out.WriteString(strings.TrimRight(line, " \t\r\n") + "\n")
	}
	return strings.Trim(out.String(), "\n")
}

// Wrong returns the errors in scripts.
func Wrong(rules *configv1alpha1.CustomizationRules) []string {
	var out []string
	for _, o := range operations {
		given := *o.script(rules)
		if given == nil {
			continue
		}
		if err := lua.Check(given.LuaScript, o.Function); err != nil {
			out = append(out, fmt.Sprintf("%s: %s", o.Name, oneLine(err)))
		}
	}
	return out
}

// Changes returns the difference of two sets of scripts; empty if there is none.
func Changes(name string, before, after configv1alpha1.CustomizationRules) (string, error) {
	c := &configv1alpha1.ResourceInterpreterCustomization{}
	texts := [2]string{}
	for i, rules := range []configv1alpha1.CustomizationRules{before, after} {
		c.Spec.Customizations = rules
		texts[i] = Document(c, false)
	}
	return lineDiff(texts[0], texts[1], name, name+" (edited)")
}
