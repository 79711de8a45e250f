package customization

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// Format is the format in which results are written.
type Format string

// Formats of results. YAML and JSON have the bare answers, one document each.
const (
	Text Format = "text"
	YAML Format = "yaml"
	JSON Format = "json"
)

// A Printer writes results.
type Printer struct {
	Out    io.Writer
	Format Format
	// Color enables colors, for terminals.
	Color bool

	printed int
}

// Result writes a result. A failed one is written in the format Text only.
func (p *Printer) Result(r Result) error {
	var out bytes.Buffer
	var err error
	switch {
	case p.Format == Text:
		err = p.text(&out, r)
	case r.Err != nil:
		return nil
	case p.Format == JSON:
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(r.bare())
	default:
		if p.printed > 0 {
			out.WriteString("---\n")
		}
		err = writeYAML(&out, r.bare())
	}
	if err != nil {
		return err
	}
	p.printed++
	_, err = p.Out.Write(out.Bytes())
	return err
}

// Diff writes a difference of scripts.
func (p *Printer) Diff(diff string) error {
	_, err := io.WriteString(p.Out, p.paint(printable(diff)))
	return err
}

// printable escapes the control characters in a text of several lines, except tabs.
func printable(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(line, "\n")
		for i, cell := range strings.Split(body, "\t") {
			if i > 0 {
				out.WriteByte('\t')
			}
			out.WriteString(excerpt.Inline(cell))
		}
		out.WriteString(line[len(body):])
	}
	return out.String()
}

// bare returns the answer itself: the object, the only value, or the values by name.
func (r Result) bare() any {
	if r.Answer.Changed != nil {
		return r.Answer.Changed.Object
	}
	if len(r.Answer.Values) == 1 && r.Answer.Values[0].Name != "replicas" {
		return r.Answer.Values[0].Is
	}
	out := map[string]any{}
	for _, v := range r.Answer.Values {
		out[v.Name] = v.Is
	}
	return out
}

func (p *Printer) text(out *bytes.Buffer, r Result) error {
	by := r.By
	if by == "" {
		by = "no rule, so " + r.Operation.Without
	}
	if p.printed > 0 {
		out.WriteString("\n")
	}
	fmt.Fprintf(out, "%s of %s: %s\n", r.Operation.Name, nameOf(r.Object), by)
	if r.Err != nil {
		fmt.Fprintf(out, "  error: %s\n", oneLine(r.Err))
		return nil
	}
	if r.By == "" && r.Operation.Field != "statusReflection" {
		return nil
	}
	if r.Answer.Changed != nil {
		diff, err := Diff(r.Object.Object, r.Answer.Changed.Object, "before", "after")
		if err != nil {
			return err
		}
		if diff == "" {
			diff = "nothing changes\n"
		}
		out.WriteString(p.paint(diff))
		return nil
	}
	for _, v := range r.Answer.Values {
		if err := writeYAML(out, map[string]any{v.Name: v.Is}); err != nil {
			return err
		}
	}
	return nil
}

// Diff returns the difference of two values as YAML, with some lines around each
// change; empty if there is none.
func Diff(before, after any, from, to string) (string, error) {
	var a, b bytes.Buffer
	if err := writeYAML(&a, before); err != nil {
		return "", err
	}
	if err := writeYAML(&b, after); err != nil {
		return "", err
	}
	return lineDiff(a.String(), b.String(), from, to)
}

func lineDiff(before, after, from, to string) (string, error) {
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: slices.Collect(strings.Lines(before)), B: slices.Collect(strings.Lines(after)), FromFile: from, ToFile: to, Context: 3,
	})
}

func writeYAML(out *bytes.Buffer, v any) error {
	data, err := yaml.Marshal(v)
	if err == nil {
		out.Write(data)
	}
	return err
}

// Colors of a terminal.
const (
	red, green, cyan, plain = "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[0m"
)

// paint colors a difference for a terminal.
func (p *Printer) paint(diff string) string {
	if !p.Color {
		return diff
	}
	var out strings.Builder
	for line := range strings.Lines(diff) {
		color := map[byte]string{'-': red, '+': green, '@': cyan}[line[0]]
		if color == "" {
			out.WriteString(line)
			continue
		}
		out.WriteString(color + strings.TrimSuffix(line, "\n") + plain + "\n")
	}
	return out.String()
}

// oneLine returns the text of an error on one line.
func oneLine(err error) string { return excerpt.Inline(strings.Join(strings.Fields(err.Error()), " ")) }
