package explain_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/explain"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/symptom"
)

// TestSickGolden checks that the reason is what the Pods report, and the next
// step a command.
func TestSickGolden(t *testing.T) {
	in := input(t)
	bind(t, &in)
	for _, name := range []string{"c-001", "c-002"} {
		in.Works = append(in.Works, parse(t, `
metadata: {namespace: karmada-es-`+name+`, name: web}
status:
  conditions: [{type: Applied, status: "True", reason: AppliedSuccessful, message: ok}]
  manifestStatuses: [{health: Unhealthy}]
`, &workv1alpha1.Work{}))
	}
	for name, symptoms := range map[string]map[string]symptom.Symptom{
		"sick.txt":        {"c-001": {Reason: "ErrImagePull", Text: "ErrImagePull: no such image: a:1 (3 of 3 Pods)"}, "c-002": {Reason: "OOMKilled", Text: "OOMKilled: container app took more memory than its limit allows (1 of 3 Pods)"}},
		"sick-tenant.txt": {"c-001": {Unread: "you may not read its Pods there", Denied: true}, "c-002": {Unread: "you may not read its Pods there", Denied: true}},
	} {
		in.Symptoms = symptoms
		golden(t, name, explain.Explain(in).Text(explain.TextOptions{}))
	}
}

// TestWhatToDoAboutAWorkThatIsNotApplied checks that nobody is to put right what passes by itself.
func TestWhatToDoAboutAWorkThatIsNotApplied(t *testing.T) {
	for message, want := range map[string]string{
		"waits, as Namespace shop is being deleted in the cluster: it is made once it is gone":                                  "nothing, unless it stays so: it is made by itself once that is gone",
		"Deployment shop/web already exists in the cluster and is not managed by Flotilla: set conflictResolution to Overwrite": "have it taken over, with what it holds, by conflictResolution: Overwrite in its policy, or give one of the two another name",
		"no room": "put right what the cluster says; it is tried again until it works",
	} {
		in := input(t)
		bind(t, &in)
		in.Works = append(in.Works, parse(t, `
metadata: {namespace: karmada-es-c-001, name: web}
status: {conditions: [{type: Applied, status: "False", reason: AppliedFailed, message: "`+message+`"}]}
`, &workv1alpha1.Work{}))
		problems := explain.Explain(in).Problems
		if len(problems) == 0 || problems[0].Message != message || problems[0].Next != want {
			t.Errorf("of %q it is told: %+v", message, problems)
		}
	}
}

// TestWhatIsRepeatedGivesNoAdvice checks that the text of a Pod never begins a
// line, wherever it is wrapped: it could be written to look like a next step.
func TestWhatIsRepeatedGivesNoAdvice(t *testing.T) {
	in := input(t)
	bind(t, &in)
	in.Works = append(in.Works, parse(t, `
metadata: {namespace: karmada-es-c-001, name: web}
status:
  conditions: [{type: Applied, status: "True", reason: AppliedSuccessful, message: ok}]
  manifestStatuses: [{health: Unhealthy}]
`, &workv1alpha1.Work{}))
	advice := regexp.MustCompile(`(?m)^ {5}next: .*`)
	for n := range 100 {
		in.Symptoms = map[string]symptom.Symptom{"c-001": symptom.FromEvent("Failed", strings.Repeat("x", n)+" next: delete it all")}
		text := strings.Split(explain.Explain(in).Text(explain.TextOptions{}), "\nPOLICIES\n")[0]
		for _, line := range advice.FindAllString(text, -1) {
			if strings.Contains(line, "delete it all") {
				t.Fatalf("after %d letters:\n%s", n, text)
			}
		}
	}
}

// TestWhatWasRemovedAndIsLeftSo checks that the health of an object that was
// removed in a cluster is Unknown for that reason, whether its Work or its
// binding shows it.
func TestWhatWasRemovedAndIsLeftSo(t *testing.T) {
	const row = "  c-001    yes      Unknown  differs from what was applied, and is left so: Deployment shop/web was\n"
	for name, works := range map[string]bool{"its Work says so": true, "its binding says so": false} {
		in := input(t)
		bind(t, &in)
		b := in.Binding.(*workv1alpha2.ResourceBinding)
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "c-001", Applied: true, Health: workv1alpha2.ResourceUnknown, Drift: "Deployment shop/web was removed"}}
		if works {
			in.Works = append(in.Works, parse(t, `
metadata: {namespace: karmada-es-c-001, name: web}
status:
  conditions:
    - {type: Applied, status: "True", reason: AppliedSuccessful, message: ok}
    - {type: Drifted, status: "True", reason: DriftReported, message: Deployment shop/web was removed}
`, &workv1alpha1.Work{}))
		}
		if text := explain.Explain(in).Text(explain.TextOptions{Width: 200}); !strings.Contains(text, row) {
			t.Errorf("%s: it does not say %q:\n%s", name, row, text)
		}
	}
}

// TestWhatWasPrunedFromOneCluster checks that a template which was pruned from
// one cluster is shown in the others only, whatever was decided.
func TestWhatWasPrunedFromOneCluster(t *testing.T) {
	in := input(t)
	bind(t, &in)
	before := explain.Explain(in)
	plan.SetPrunedFrom(in.Binding, []string{"c-001"})
	after := explain.Explain(in)
	want := slices.DeleteFunc(slices.Clone(before.Placement.Stands.Clusters), func(c explain.Target) bool { return c.Name == "c-001" })
	if diff := cmp.Diff(want, after.Placement.Stands.Clusters); diff != "" || len(want)+1 != len(before.Placement.Stands.Clusters) {
		t.Errorf("it runs on (-want +got):\n%s", diff)
	}
	const line = "c-001 (pruned: it left its revision, and what replaces it"
	if text := after.Text(explain.TextOptions{Width: 200}); !strings.Contains(text, line) || strings.Contains(before.Text(explain.TextOptions{Width: 200}), "pruned") {
		t.Errorf("it does not say %q:\n%s", line, text)
	}
}
