package validate_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/validate"
)

// TestFormerPurgeModes: policies and tasks that were written for earlier versions of Karmada mean what they meant.
func TestFormerPurgeModes(t *testing.T) {
	for before, after := range map[string]string{
		"Immediately": "Directly", "Graciously": "Gracefully", "Directly": "Directly", "Gracefully": "Gracefully", "Never": "Never", "Soon": "Soon",
	} {
		t.Run(before, func(t *testing.T) {
			text := func(mode string) string {
				return "{spec: {failover: {application: {decisionConditions: {tolerationSeconds: 1}, gracePeriodSeconds: 5, purgeMode: " + mode + "}, cluster: {purgeMode: " + mode + "}}}}"
			}
			p := decode[policyv1alpha1.PropagationPolicy](t, text(before))
			validate.DefaultPolicy(p, false, nil)
			if diff := cmp.Diff(decode[policyv1alpha1.PropagationPolicy](t, text(after)), p); diff != "" {
				t.Errorf("policy (-want +got):\n%s", diff)
			}

			tasks := func(mode string) string {
				return "{spec: {conflictResolution: Abort, resource: {apiVersion: v1, kind: Pod, name: a}, gracefulEvictionTasks: [{fromCluster: a, purgeMode: " + mode + ", reason: A, producer: b}], " +
					"failover: {cluster: {purgeMode: " + mode + "}}}}"
			}
			b := decode[workv1alpha2.ResourceBinding](t, tasks(before))
			validate.DefaultBinding(b)
			if diff := cmp.Diff(decode[workv1alpha2.ResourceBinding](t, tasks(after)), b); diff != "" {
				t.Errorf("binding (-want +got):\n%s", diff)
			}

			fields := func(mode string) (out map[string]any) {
				content, err := json.Marshal(decode[map[string]any](t, text(mode)))
				if err == nil {
					err = json.Unmarshal(content, &out)
				}
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			f := fields(before)
			validate.RenamePurgeModes(f)
			if diff := cmp.Diff(fields(after), f); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAGracefulPolicyByItsFormerNameGetsItsGrace: it is what a policy by the present name gets.
func TestAGracefulPolicyByItsFormerNameGetsItsGrace(t *testing.T) {
	p := decode[policyv1alpha1.PropagationPolicy](t, "{spec: {failover: {application: {decisionConditions: {}, purgeMode: Graciously}}}}")
	validate.DefaultPolicy(p, false, nil)
	want := decode[policyv1alpha1.PropagationPolicy](t, "{spec: {failover: {application: {decisionConditions: {}, purgeMode: Gracefully, gracePeriodSeconds: 600}}}}")
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
