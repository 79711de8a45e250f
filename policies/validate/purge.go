package validate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// RenamePurgeModes replaces the former names of purge modes in the fields of a policy, as Default does. It is for
// those who hold fields against a schema, which knows the present names only.
func RenamePurgeModes(fields map[string]any) {
	for _, of := range []string{"application", "cluster"} {
		path := []string{"spec", "failover", of, "purgeMode"}
		if mode, is, err := unstructured.NestedString(fields, path...); err == nil && is {
			_ = unstructured.SetNestedField(fields, string(presentMode(policyv1alpha1.PurgeMode(mode))), path...) // it was there
		}
	}
}

// renameModes does so in a policy, and in the copy of it that a binding has.
func renameModes(f *policyv1alpha1.FailoverBehavior) {
	if f != nil && f.Application != nil {
		f.Application.PurgeMode = presentMode(f.Application.PurgeMode)
	}
	if f != nil && f.Cluster != nil {
		f.Cluster.PurgeMode = presentMode(f.Cluster.PurgeMode)
	}
}

// renameModesOfTasks does so in eviction tasks.
func renameModesOfTasks(tasks []workv1alpha2.GracefulEvictionTask) {
	for i := range tasks {
		tasks[i].PurgeMode = presentMode(tasks[i].PurgeMode)
	}
}

// presentMode returns the present name of a purge mode, which Karmada renamed.
func presentMode(mode policyv1alpha1.PurgeMode) policyv1alpha1.PurgeMode {
	switch mode {
	case "Immediately":
		return policyv1alpha1.PurgeModeDirectly
	case "Graciously":
		return policyv1alpha1.PurgeModeGracefully
	default:
		return mode
	}
}
