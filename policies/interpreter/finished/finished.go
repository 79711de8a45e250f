package finished

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// end is how the status of a kind shows that an object has ended: one of the
// conditions is true, or the field has one of the words.
type end struct {
	conditions []string
	field      []string
	words      []string
}

// endOf returns how a kind shows that it has ended, and false for kinds that do
// not end, or are not known.
func endOf(kind schema.GroupKind) (end, bool) {
	switch kind {
	case schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}:
		return end{conditions: []string{string(batchv1.JobComplete), string(batchv1.JobFailed)}}, true
	// A pod that failed may have been evicted, and run elsewhere.
	case schema.GroupKind{Group: corev1.GroupName, Kind: "Pod"}:
		return end{field: []string{"phase"}, words: []string{string(corev1.PodSucceeded)}}, true
	case schema.GroupKind{Group: "argoproj.io", Kind: "Workflow"}:
		return end{field: []string{"phase"}, words: []string{"Succeeded", "Failed", "Error"}}, true
	case schema.GroupKind{Group: "batch.volcano.sh", Kind: "Job"}:
		return end{field: []string{"state", "phase"}, words: []string{"Completed", "Failed", "Terminated"}}, true
	case schema.GroupKind{Group: "jobset.x-k8s.io", Kind: "JobSet"}:
		return end{conditions: []string{"Completed", "Failed"}}, true
	case schema.GroupKind{Group: "ray.io", Kind: "RayJob"}:
		return end{field: []string{"jobDeploymentStatus"}, words: []string{"Complete", "Failed", "ValidationFailed"}}, true
	case schema.GroupKind{Group: "sparkoperator.k8s.io", Kind: "SparkApplication"}:
		return end{field: []string{"applicationState", "state"}, words: []string{"COMPLETED", "FAILED"}}, true
	}
	if kind.Group == "kubeflow.org" && slices.Contains([]string{"JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob"}, kind.Kind) {
		return end{conditions: []string{"Succeeded", "Failed"}}, true
	}
	return end{}, false
}

// Ends reports whether objects of a kind may come to an end.
func Ends(kind schema.GroupKind) bool {
	_, ends := endOf(kind)
	return ends
}

// Is reports whether an object of a kind has ended, by the status, as JSON, that
// a cluster last reported of it; false where the status cannot be read.
func Is(kind schema.GroupKind, status []byte) bool { return How(kind, status) != "" }

// How returns how an object of a kind has ended, in the word of its kind such as
// "Complete", by the status, as JSON, that a cluster last reported of it; empty
// where it has not, or the status cannot be read.
func How(kind schema.GroupKind, status []byte) string {
	by, ends := endOf(kind)
	if !ends || len(status) == 0 {
		return ""
	}
	var fields map[string]any
	if json.Unmarshal(status, &fields) != nil {
		return ""
	}
	conditions := rules.List(fields, "conditions")
	for _, name := range by.conditions {
		if rules.ConditionTrue(conditions, name) {
			return name
		}
	}
	if len(by.field) == 0 {
		return ""
	}
	if word := rules.Text(fields, by.field...); slices.Contains(by.words, word) {
		return word
	}
	return ""
}
