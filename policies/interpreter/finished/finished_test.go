package finished_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/interpreter/finished"
)

// TestIs checks that an object has ended where its status shows so in the way of
// its kind, and only there.
func TestIs(t *testing.T) {
	job := schema.GroupKind{Group: "batch", Kind: "Job"}
	pod := schema.GroupKind{Kind: "Pod"}
	for name, tc := range map[string]struct {
		kind   schema.GroupKind
		status string
		want   bool
	}{
		"a Job that is complete":                {job, `{"succeeded":1,"conditions":[{"type":"Complete","status":"True"}]}`, true},
		"a Job that failed for good":            {job, `{"failed":7,"conditions":[{"type":"Failed","status":"True"}]}`, true},
		"a Job that is about to fail":           {job, `{"conditions":[{"type":"FailureTarget","status":"True"}]}`, false},
		"a Job that is not complete":            {job, `{"conditions":[{"type":"Complete","status":"False"}]}`, false},
		"a Job that runs":                       {job, `{"active":1}`, false},
		"a Job of which nothing is known":       {job, ``, false},
		"a Job whose status is none":            {job, `[]`, false},
		"a Job whose conditions are none":       {job, `{"conditions":"Complete"}`, false},
		"a Pod that succeeded":                  {pod, `{"phase":"Succeeded"}`, true},
		"a Pod that failed, or was evicted":     {pod, `{"phase":"Failed"}`, false},
		"a Pod that runs":                       {pod, `{"phase":"Running"}`, false},
		"a Workflow with an error":              {schema.GroupKind{Group: "argoproj.io", Kind: "Workflow"}, `{"phase":"Error"}`, true},
		"a Rollout, which runs on":              {schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}, `{"phase":"Succeeded"}`, false},
		"a Volcano Job that is complete":        {schema.GroupKind{Group: "batch.volcano.sh", Kind: "Job"}, `{"state":{"phase":"Completed"}}`, true},
		"a Volcano Job that may be resumed":     {schema.GroupKind{Group: "batch.volcano.sh", Kind: "Job"}, `{"state":{"phase":"Aborted"}}`, false},
		"a JobSet that is complete":             {schema.GroupKind{Group: "jobset.x-k8s.io", Kind: "JobSet"}, `{"conditions":[{"type":"Completed","status":"True"}]}`, true},
		"a RayJob that is complete":             {schema.GroupKind{Group: "ray.io", Kind: "RayJob"}, `{"jobDeploymentStatus":"Complete"}`, true},
		"a RayJob that is tried again":          {schema.GroupKind{Group: "ray.io", Kind: "RayJob"}, `{"jobDeploymentStatus":"Retrying"}`, false},
		"a SparkApplication that is complete":   {schema.GroupKind{Group: "sparkoperator.k8s.io", Kind: "SparkApplication"}, `{"applicationState":{"state":"COMPLETED"}}`, true},
		"a SparkApplication that is tried anew": {schema.GroupKind{Group: "sparkoperator.k8s.io", Kind: "SparkApplication"}, `{"applicationState":{"state":"PENDING_RERUN"}}`, false},
		"a TFJob that succeeded":                {schema.GroupKind{Group: "kubeflow.org", Kind: "TFJob"}, `{"conditions":[{"type":"Succeeded","status":"True"}]}`, true},
		"a Deployment":                          {schema.GroupKind{Group: "apps", Kind: "Deployment"}, `{"conditions":[{"type":"Complete","status":"True"}]}`, false},
		"somebody's Job":                        {schema.GroupKind{Group: "sea.example", Kind: "Job"}, `{"conditions":[{"type":"Complete","status":"True"}]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := finished.Is(tc.kind, []byte(tc.status)); got != tc.want {
				t.Errorf("it has ended: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestHow checks that an end has the word that its kind has for it.
func TestHow(t *testing.T) {
	for name, tc := range map[string]struct {
		kind         schema.GroupKind
		status, want string
	}{
		"a condition": {schema.GroupKind{Group: "batch", Kind: "Job"}, `{"conditions":[{"type":"Complete","status":"False"},{"type":"Failed","status":"True"}]}`, "Failed"},
		"a field":     {schema.GroupKind{Group: "argoproj.io", Kind: "Workflow"}, `{"phase":"Succeeded"}`, "Succeeded"},
		"no end":      {schema.GroupKind{Group: "argoproj.io", Kind: "Workflow"}, `{"phase":"Running"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := finished.How(tc.kind, []byte(tc.status)); got != tc.want {
				t.Errorf("it has ended as %q, want %q", got, tc.want)
			}
		})
	}
}
