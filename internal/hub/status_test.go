package hub_test

import (
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/hub"
)

func TestReplaceStatus(t *testing.T) {
	status := workv1alpha1.WorkStatus{ManifestStatuses: []workv1alpha1.ManifestStatus{{Health: "Healthy"}}}
	data, err := hub.ReplaceStatus("u-1", status)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		t.Fatal(err)
	}
	for name, before := range map[string]string{
		"an object without a status":       `{"metadata":{"uid":"u-1"},"spec":{"workload":{"manifests":[{"a":1}]}}}`,
		"an object with another status":    `{"metadata":{"uid":"u-1"},"spec":{"workload":{"manifests":[{"a":1}]}},"status":{"conditions":[{"type":"Applied"}]}}`,
		"an object with the status by now": `{"metadata":{"uid":"u-1"},"spec":{"workload":{"manifests":[{"a":1}]}},"status":{"manifestStatuses":[{"identifier":{},"health":"Healthy"}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			after, err := patch.Apply([]byte(before))
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := json.Unmarshal(after, &got); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{"metadata": map[string]any{"uid": "u-1"}, "spec": map[string]any{"workload": map[string]any{"manifests": []any{map[string]any{"a": 1.0}}}}}
			raw, _ := json.Marshal(status)
			var is any
			if err := json.Unmarshal(raw, &is); err != nil {
				t.Fatal(err)
			}
			want["status"] = is
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestReplaceStatusOfAnother checks that an object that was recreated under the
// name does not get the status of the one before.
func TestReplaceStatusOfAnother(t *testing.T) {
	data, err := hub.ReplaceStatus("u-1", workv1alpha1.WorkStatus{})
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		t.Fatal(err)
	}
	if after, err := patch.Apply([]byte(`{"metadata":{"uid":"u-2"}}`)); err == nil {
		t.Errorf("it is %s", after)
	}
}
