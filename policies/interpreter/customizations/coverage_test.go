package customizations_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/rulestest"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// operations are the columns of the table, each with a function that reports
// whether a kind has the rule.
var operations = []struct {
	name string
	in   func(kinds.Rules) bool
}{
	{"Replicas", func(r kinds.Rules) bool { return r.Replicas != nil }},
	{"Components", func(r kinds.Rules) bool { return r.Components != nil }},
	{"Revise", func(r kinds.Rules) bool { return r.Revise != nil }},
	{"Retain", func(r kinds.Rules) bool { return r.Retain != nil }},
	{"Reflect", func(r kinds.Rules) bool { return r.Reflect != nil }},
	{"Health", func(r kinds.Rules) bool { return r.Health != nil }},
	{"Aggregate", func(r kinds.Rules) bool { return r.Aggregate != nil }},
	{"Dependencies", func(r kinds.Rules) bool { return r.Dependencies != nil }},
}

func operationsOf(r kinds.Rules) []string {
	var out []string
	for _, op := range operations {
		if op.in(r) {
			out = append(out, op.name)
		}
	}
	return out
}

// bundled lists the kinds and operations for which Karmada has rules: all of them
// have one here, too.
var bundled = map[string]string{
	"apps.kruise.io/v1alpha1 AdvancedCronJob":         "Aggregate Dependencies",
	"apps.kruise.io/v1alpha1 BroadcastJob":            "Replicas Revise Health Aggregate Retain Reflect Dependencies",
	"apps.kruise.io/v1alpha1 CloneSet":                "Replicas Revise Aggregate Reflect Health Dependencies",
	"apps.kruise.io/v1alpha1 DaemonSet":               "Aggregate Reflect Health Dependencies",
	"apps.kruise.io/v1alpha1 SidecarSet":              "Reflect Replicas Aggregate Retain Health Dependencies",
	"apps.kruise.io/v1alpha1 UnitedDeployment":        "Replicas Revise Aggregate Reflect Health Dependencies",
	"apps.kruise.io/v1beta1 StatefulSet":              "Replicas Revise Aggregate Reflect Health Dependencies",
	"argoproj.io/v1alpha1 Workflow":                   "Replicas Revise Health Retain Dependencies",
	"batch.volcano.sh/v1alpha1 Job":                   "Health Components Aggregate Reflect",
	"flink.apache.org/v1beta1 FlinkDeployment":        "Health Components Replicas Aggregate Reflect",
	"helm.toolkit.fluxcd.io/v2beta1 HelmRelease":      "Health Aggregate Retain Reflect Dependencies",
	"kubeflow.org/v1 Notebook":                        "Replicas Health Aggregate Reflect",
	"kubeflow.org/v1 PyTorchJob":                      "Components Aggregate Health Dependencies",
	"kubeflow.org/v1 TFJob":                           "Components Aggregate Health Dependencies",
	"kubeflow.org/v2beta1 MPIJob":                     "Health Components Aggregate Reflect",
	"kustomize.toolkit.fluxcd.io/v1 Kustomization":    "Health Aggregate Retain Reflect Dependencies",
	"kyverno.io/v1 ClusterPolicy":                     "Health Aggregate Reflect",
	"kyverno.io/v1 Policy":                            "Health Aggregate Reflect",
	"ray.io/v1 RayCluster":                            "Components Health Aggregate",
	"ray.io/v1 RayJob":                                "Components Health Aggregate Dependencies",
	"ray.io/v1 RayService":                            "Replicas Revise Health Aggregate Dependencies",
	"source.toolkit.fluxcd.io/v1 GitRepository":       "Health Aggregate Retain Reflect Dependencies",
	"source.toolkit.fluxcd.io/v1beta2 Bucket":         "Health Aggregate Retain Reflect Dependencies",
	"source.toolkit.fluxcd.io/v1beta2 HelmChart":      "Health Aggregate Retain Reflect Dependencies",
	"source.toolkit.fluxcd.io/v1beta2 HelmRepository": "Health Aggregate Retain Reflect Dependencies",
	"source.toolkit.fluxcd.io/v1beta2 OCIRepository":  "Health Aggregate Retain Reflect Dependencies",
	"sparkoperator.k8s.io/v1beta2 SparkApplication":   "Health Components Aggregate Reflect",
}

func written(gvk schema.GroupVersionKind) string { return gvk.GroupVersion().String() + " " + gvk.Kind }

func TestNoLessThanKarmada(t *testing.T) {
	known := map[string][]string{}
	for gvk, r := range customizations.Table() {
		known[written(gvk)] = operationsOf(r)
	}
	for kind, ops := range bundled {
		for _, op := range strings.Fields(ops) {
			if !slices.Contains(known[kind], op) {
				t.Errorf("%s: there is no rule for %s", kind, op)
			}
		}
	}
}

// TestEveryRuleHasAnExample checks that every rule of every kind returns something
// for one of the examples, and every rule of health both answers.
func TestEveryRuleHasAnExample(t *testing.T) {
	shown := map[schema.GroupKind]rulestest.Outcome{}
	for _, e := range examples(t) {
		shown[e.GVK().GroupKind()] = rulestest.Interpret(t, customizations.Table(), e)
		if len(e.Members) < 2 && customizations.Table()[e.GVK()].Aggregate != nil {
			t.Errorf("%s: one member adds up to nothing", e.Dir)
		}
	}
	for gvk, r := range customizations.Table() {
		got, ok := shown[gvk.GroupKind()]
		if !ok {
			t.Errorf("%s has no example", written(gvk))
			continue
		}
		for _, missing := range unseen(r, got) {
			t.Errorf("%s: no example of %s", written(gvk), missing)
		}
	}
}

// unseen returns the rules that have returned nothing for any example.
func unseen(r kinds.Rules, got rulestest.Outcome) []string {
	var out []string
	check := func(name string, rule, seen bool) {
		if rule && !seen {
			out = append(out, name)
		}
	}
	judged := func(h workv1alpha2.ResourceHealth) bool {
		for _, v := range got.Health {
			if v == h {
				return true
			}
		}
		return false
	}
	retained := false
	for _, c := range got.Retained {
		retained = retained || len(c) > 0
	}
	check("replicas", r.Replicas != nil && r.Revise != nil, got.Requirements != nil)
	check("components", r.Components != nil, len(got.Components) > 0)
	check("revising", r.Revise != nil, len(got.Revised) > 0)
	check("retaining", r.Retain != nil, retained)
	check("what is healthy", r.Health != nil, judged(workv1alpha2.ResourceHealthy))
	check("what is not healthy", r.Health != nil, judged(workv1alpha2.ResourceUnhealthy) || len(got.Waiting) > 0)
	check("reflecting", r.Reflect != nil, len(got.Reflected) > 0)
	check("aggregating", r.Aggregate != nil, len(got.Aggregated) > 0)
	check("dependencies", r.Dependencies != nil, len(got.Dependencies) > 0)
	return out
}

const page = "../../../docs/spec/interpreter-bundle.md"

// TestPage compares the table of the page that users read with the rules.
func TestPage(t *testing.T) {
	const begin, end = "<!-- kinds -->\n", "<!-- end of kinds -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no place for the table", page)
	}
	want := head + begin + kindsTable() + end + tail
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("the page is not of these rules (-want +got):\n%s", diff)
	}
}

// kindsTable returns a table with a line for each kind of a group, and the
// versions that have the same rules.
func kindsTable() string {
	versions := map[string][]string{}
	for gvk, r := range customizations.Table() {
		line := fmt.Sprintf("| %s | %s |%s", gvk.Group, gvk.Kind, cellsOf(r))
		versions[line] = append(versions[line], gvk.Version)
	}
	var lines []string
	for line, vs := range versions {
		slices.Sort(vs)
		cells := strings.SplitN(line, "|", 4)
		lines = append(lines, fmt.Sprintf("|%s|%s| %s |%s\n", cells[1], cells[2], strings.Join(vs, ", "), cells[3]))
	}
	slices.Sort(lines)
	head := "| Group | Kind | Versions |"
	rule := "| --- | --- | --- |"
	for _, op := range operations {
		head += " " + op.name + " |"
		rule += " --- |"
	}
	return head + "\n" + rule + "\n" + strings.Join(lines, "")
}

func cellsOf(r kinds.Rules) string {
	out := ""
	for _, op := range operations {
		if op.in(r) {
			out += " ✓ |"
		} else {
			out += "  |"
		}
	}
	return out
}
