package customization

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/lint"
)

// What is edited and not changed is what it was.
func FuzzScripts(f *testing.F) {
	f.Add("function Retain(a, b)\n  return a\nend\n", "")
	f.Add("---- [Retain] ----\n", "x")
	f.Add("--! x\n\r\n\t", "local kube = require(\"kube\")")
	f.Fuzz(func(t *testing.T, retain, health string) {
		c := &configv1alpha1.ResourceInterpreterCustomization{}
		c.Spec.Customizations.Retention = &configv1alpha1.CustomizationScript{LuaScript: retain}
		c.Spec.Customizations.HealthInterpretation = &configv1alpha1.CustomizationScript{LuaScript: health}
		if strings.Contains(retain+health, "--") {
			// It may look like a line of ours: then nothing is promised but an end.
			_, _ = Scripts(Document(c, true), c.Spec.Customizations)
			return
		}
		got, err := Scripts(Document(c, true), c.Spec.Customizations)
		if trimmed(retain)+trimmed(health) == "" {
			return // there is nothing in it
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []struct {
			was string
			is  *configv1alpha1.CustomizationScript
		}{{retain, got.Retention}, {health, got.HealthInterpretation}} {
			if strings.TrimSpace(s.was) == "" {
				continue
			}
			if s.is == nil || s.is.LuaScript != s.was {
				t.Errorf("%q became %v", s.was, s.is)
			}
		}
	})
}

// A file is written whole, whatever the script: what is read of it then is what
// was to be written.
func FuzzWritten(f *testing.F) {
	content, err := os.ReadFile("../testdata/interpret/several.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add("function Retain(a, b)\n  return a\nend\n")
	f.Add("---\n# : {[ \t'\"\n")
	f.Fuzz(func(t *testing.T, script string) {
		sources, err := Read([]lint.File{{Name: "several.yaml", Content: content}})
		if err != nil {
			t.Fatal(err)
		}
		want := sources[0].Customization.Spec.Customizations
		want.Retention = &configv1alpha1.CustomizationScript{LuaScript: script}
		written, err := sources[0].Written(want)
		if err != nil {
			return // what YAML cannot hold
		}
		if !bytes.HasPrefix(written, content[:bytes.Index(content, []byte("apiVersion: config"))]) {
			t.Errorf("what is before was changed:\n%s", written)
		}
		again, err := Read([]lint.File{{Name: "several.yaml", Content: written}})
		if err != nil {
			t.Fatalf("%v:\n%s", err, written)
		}
		if diff := cmp.Diff(want, again[0].Customization.Spec.Customizations); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// Lines of a script that look like instructions for the editor are part of it.
func TestScriptsKeep(t *testing.T) {
	const script = "--! not ours\nfunction Retain(a, b)\n--! nor this: error: x\n  return a\nend\n"
	c := &configv1alpha1.ResourceInterpreterCustomization{}
	c.Spec.Customizations.Retention = &configv1alpha1.CustomizationScript{LuaScript: script}
	for _, docs := range []bool{false, true} {
		got, err := Scripts(Again(Document(c, docs), []string{"something is wrong"}), c.Spec.Customizations)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.Spec.Customizations, got); diff != "" {
			t.Errorf("scripts (-want +got):\n%s", diff)
		}
	}
}

// A difference says what scripts hold, and not to the terminal.
func TestDiffPrintable(t *testing.T) {
	var out bytes.Buffer
	if err := (&Printer{Out: &out}).Diff("@@ -1 +1 @@\n-\ta\x1b[2J\u202e\n+\tb\n"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("@@ -1 +1 @@\n-\ta\\u001b[2J\\u202e\n+\tb\n", out.String()); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}
