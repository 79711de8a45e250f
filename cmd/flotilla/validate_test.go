package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/cmd/flotilla/lint"
	"github.com/flotilla-io/flotilla/internal/command"
)

// validateRun runs validate as a shell would, and returns all that it says.
func validateRun(t *testing.T, in string, args ...string) (code int, out, errOut string) {
	t.Helper()
	return commandtest.Run(t.Context(), newValidateCommand(), in, args...).All()
}

func TestValidateGolden(t *testing.T) {
	good, err := os.ReadFile("testdata/validate/good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"good":          {"-f", "testdata/validate/good.yaml"},
		"refused":       {"-f", "testdata/validate/refused.yaml"},
		"unwise":        {"-f", "testdata/validate/unwise.yaml"},
		"strict":        {"--strict", "testdata/validate/unwise.yaml"},
		"json":          {"-o", "json", "-f", "testdata/validate/folder,testdata/validate/duplicate-key.yaml"},
		"folder":        {"-f", "testdata/validate/folder", "testdata/validate/folder/a.yaml"},
		"kustomized":    {"-f", "testdata/validate/kustomized"},
		"overlays":      {"-f", "testdata/validate/overlays"},
		"overlays-json": {"-o", "json", "-f", "testdata/validate/overlays/clusters"},
		"overlays-file": {"-f", "testdata/validate/overlays/clusters/fleet.yaml"}, // of which no folder is known
		"duplicate-key": {"-f", "testdata/validate/duplicate-key.yaml"},
		"stdin":         {"-f", "-"},
		"allowed":       {"-f", "testdata/validate/refused.yaml", "--allow-no-execute-taint-policy"},
		"missing":       {"-f", "testdata/validate/missing.yaml"},
		"nothing":       {},
		"output":        {"-f", "-", "-o", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := validateRun(t, string(good), args...)
			got := fmt.Sprintf("$ flotilla validate %s\n%sstderr: %sexit code %d\n", strings.Join(args, " "), out, errOut, code)
			golden(t, filepath.Join("validate", "golden", name+".txt"), got)
		})
	}
}

// What is wrong is found in any order of files.
func TestValidateOrder(t *testing.T) {
	one := []string{"-o", "json", "-f", "testdata/validate/unwise.yaml", "-f", "testdata/validate/refused.yaml"}
	other := []string{"-o", "json", "-f", "testdata/validate/refused.yaml", "-f", "testdata/validate/unwise.yaml"}
	_, a, _ := validateRun(t, "", one...)
	_, b, _ := validateRun(t, "", other...)
	var reports [2]lint.Report
	for i, text := range []string{a, b} {
		if err := json.Unmarshal([]byte(text), &reports[i]); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(reports[0], reports[1]); diff != "" {
		t.Errorf("the order of files matters:\n%s", diff)
	}
}

// Foreign text cannot write lines of its own, nor to the terminal.
func TestValidateEscapes(t *testing.T) {
	code, out, _ := validateRun(t, "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterOverridePolicy\nmetadata: {name: \"a\\nb\\e[31m\\u202e\"}\nspec: {\"x\\ny\": 1, overrideRules: []}\n", "-f", "-")
	if code != command.Failed || strings.ContainsAny(out, "\x1b\u202e") || !strings.Contains(out, `a\u000ab\u001b[31m\u202e`) {
		t.Errorf("exit code %d, output %q", code, out)
	}
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "-:") {
			t.Errorf("a line of its own: %q", line)
		}
	}
}
