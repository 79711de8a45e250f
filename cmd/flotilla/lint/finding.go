package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// Severity is the severity of a finding.
type Severity string

const (
	// Error means that the control plane would refuse the object.
	Error Severity = "error"
	// Warning means that it would accept the object, which will not have the intended effect.
	Warning Severity = "warning"
)

// A Finding is a problem in a file.
type Finding struct {
	// File is the name of the file as it was given, "-" for standard input.
	File string `json:"file"`
	// Line is the line number, from 1; 0 if it concerns the whole file.
	Line int `json:"line"`
	// Document counts the file's documents, from 1; 0 if it concerns the whole file.
	Document int      `json:"document,omitempty"`
	Severity Severity `json:"severity"`
	// Kind, Namespace and Name are the object's; empty if there is none.
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Field is the path of the field; empty if it concerns the whole object.
	Field string `json:"field,omitempty"`
	// Message describes what is wrong, and often what to do.
	Message string `json:"message"`
}

// String returns the finding on one line, in the form that compilers use.
func (f Finding) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	fmt.Fprintf(&b, ": %s: ", f.Severity)
	if f.Kind != "" {
		name := strings.TrimPrefix(f.Namespace+"/"+f.Name, "/")
		b.WriteString(strings.TrimSuffix(f.Kind+" "+name, " ") + ": ")
	}
	if f.Field != "" {
		b.WriteString(f.Field + ": ")
	}
	b.WriteString(f.Message)
	return excerpt.Inline(b.String())
}

// A Report is the result for all files.
type Report struct {
	// Files is how many were read, Objects how many objects are in them, and
	// Checked how many of these are of kinds that are known.
	Files   int `json:"files"`
	Objects int `json:"objects"`
	Checked int `json:"checked"`
	// Built is how many Kustomizations were built, and Unbuilt how many were not because their source is another one.
	Built   int `json:"built,omitempty"`
	Unbuilt int `json:"unbuilt,omitempty"`
	// Kustomized is how many folders with a kustomization were built without a Kustomization.
	Kustomized int `json:"kustomized,omitempty"`
	// Encrypted is how many files are encrypted with SOPS: what they hold was not looked at.
	Encrypted int `json:"encrypted,omitempty"`
	// Errors and Warnings count the findings.
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	// Findings are sorted by file and line.
	Findings []Finding `json:"findings"`
}

func (r *Report) add(f Finding) {
	if f.Severity == Error {
		r.Errors++
	} else {
		r.Warnings++
	}
	r.Findings = append(r.Findings, f)
}

// count counts an object of a known kind, if it is in a file and not built.
func (r *Report) count(o *object) {
	if o.by == "" {
		r.Checked++
	}
}

func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Severity, b.Severity),
			cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	if r.Findings == nil {
		r.Findings = []Finding{} // an empty list in JSON
	}
}
