package rehearsal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/forecast/snapshot"
)

// digestOf returns a digest of what of a fleet a plan reads. Statuses are not in it but whether clusters are ready and which kinds
// they have: their room changes with each pod.
func digestOf(s *snapshot.Snapshot) (string, error) {
	d := digester{sha256.New()}
	for i := range s.Clusters {
		c := &s.Clusters[i]
		ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
		if err := d.add(c, ready != nil && ready.Status == "True", c.Status.APIEnablements); err != nil {
			return "", err
		}
	}
	for _, err := range []error{
		each(d, s.Policies.Propagation), each(d, s.Policies.ClusterPropagation), each(d, s.Policies.Overrides), each(d, s.Policies.ClusterOverrides),
		each(d, s.Policies.Quotas), each(d, s.Bindings.Namespaced), each(d, s.Bindings.Cluster), each(d, s.Customizations), each(d, s.Kustomizations),
	} {
		if err != nil {
			return "", err
		}
	}
	for _, t := range s.Templates {
		if err := d.fields(maps.Clone(t)); err != nil {
			return "", err
		}
	}
	if err := json.NewEncoder(d).Encode([]any{s.Priorities, s.Sources}); err != nil {
		return "", fmt.Errorf("digest of the fleet: %w", err)
	}
	return hex.EncodeToString(d.Sum(nil))[:12], nil
}

type digester struct{ hash.Hash }

func each[T any](d digester, all []T) error {
	for i := range all {
		if err := d.add(&all[i]); err != nil {
			return err
		}
	}
	return nil
}

func (d digester) add(obj any, more ...any) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err == nil {
		err = d.fields(fields)
	}
	if err == nil && len(more) > 0 {
		err = json.NewEncoder(d).Encode(more)
	}
	return err
}

// fields adds an object without what changes although nothing does that a plan reads.
func (d digester) fields(obj map[string]any) error {
	delete(obj, "status")
	if metadata, is := obj["metadata"].(map[string]any); is {
		kept := map[string]any{}
		for _, name := range []string{"namespace", "name", "labels", "deletionTimestamp"} {
			kept[name] = metadata[name]
		}
		if annotations, is := metadata["annotations"].(map[string]any); is {
			annotations = maps.Clone(annotations)
			delete(annotations, fluxmeta.ReconcileRequestAnnotation)
			delete(annotations, workv1alpha2.SchedulingDecisionAnnotation)
			kept["annotations"] = annotations
		}
		obj["metadata"] = kept
	}
	if spec, is := obj["spec"].(map[string]any); is {
		if of, is := spec["resource"].(map[string]any); is && of["resourceVersion"] != nil { // of a binding
			of, spec = maps.Clone(of), maps.Clone(spec)
			delete(of, "resourceVersion")
			spec["resource"], obj["spec"] = of, spec
		}
	}
	if err := json.NewEncoder(d).Encode(obj); err != nil {
		return fmt.Errorf("digest of the fleet: %w", err)
	}
	return nil
}
