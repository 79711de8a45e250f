package policies_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/validate"
)

// apply takes YAML documents: policies, overrides, PriorityClasses and templates.
func (w *world) apply(_ []string, body string) error {
	for doc := range strings.SplitSeq(body, "---\n") {
		var obj map[string]any
		data, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			return err
		}
		if err := utiljson.Unmarshal(data, &obj); err != nil {
			return err
		}
		if err := w.applyObject(&unstructured.Unstructured{Object: obj}, data); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) applyObject(obj *unstructured.Unstructured, data []byte) error {
	k := key(obj.GetKind(), obj.GetNamespace(), obj.GetName())
	switch obj.GetKind() {
	case "PropagationPolicy":
		return w.applyPolicy(k, data, &policyv1alpha1.PropagationPolicy{})
	case "ClusterPropagationPolicy":
		return w.applyPolicy(k, data, &policyv1alpha1.ClusterPropagationPolicy{})
	case "OverridePolicy":
		return w.applyOverride(k, data, &policyv1alpha1.OverridePolicy{})
	case "ClusterOverridePolicy":
		return w.applyOverride(k, data, &policyv1alpha1.ClusterOverridePolicy{})
	case "PriorityClass":
		class := &schedulingv1.PriorityClass{}
		if err := yaml.UnmarshalStrict(data, class); err != nil {
			return err
		}
		w.priorities[class.Name] = class.Value
		return nil
	}
	w.put(k, obj)
	return nil
}

// put stores a template as the server would: generation and status are its own.
func (w *world) put(k string, obj *unstructured.Unstructured) {
	obj.SetUID(uid(k))
	obj.SetGeneration(1)
	obj.SetCreationTimestamp(metav1.NewTime(w.now))
	if old := w.templates[k]; old != nil {
		obj.SetGeneration(old.GetGeneration() + 1)
		obj.SetCreationTimestamp(old.GetCreationTimestamp())
		labels, annotations := obj.GetLabels(), obj.GetAnnotations()
		if labels == nil {
			labels = map[string]string{}
		}
		if annotations == nil {
			annotations = map[string]string{}
		}
		carry(labels, old.GetLabels())
		carry(annotations, old.GetAnnotations())
		obj.SetLabels(labels)
		obj.SetAnnotations(annotations)
		if old.Object["status"] != nil {
			obj.Object["status"] = old.Object["status"]
		}
	}
	obj.SetResourceVersion(w.revise())
	w.templates[k] = obj
}

// carry keeps the claim, which another writer than the user owns.
func carry(to, from map[string]string) {
	for k, v := range from {
		if strings.Contains(k, "policy.karmada.io/") || k == propagation.WaitsAnnotation {
			to[k] = v
		}
	}
}

func (w *world) applyPolicy(k string, data []byte, p policyv1alpha1.Policy) error {
	if err := yaml.UnmarshalStrict(data, p); err != nil {
		return err
	}
	old := w.policies[k]
	if old != nil {
		p.SetLabels(old.GetLabels())
	}
	validate.DefaultPolicy(p, old == nil, func() string { return "id-of-" + p.GetName() })
	if p.PropagationSpec().SchedulerName == "" { // the schema's default
		p.PropagationSpec().SchedulerName = policyv1alpha1.DefaultSchedulerName
	}
	if errs, _ := validate.Policy(p, old); len(errs) > 0 {
		return errs.ToAggregate()
	}
	w.putPolicy(k, p, old)
	return nil
}

// putPolicy stores a policy as the server would, and the loop's note of when a
// change of it was seen.
func (w *world) putPolicy(k string, p, old policyv1alpha1.Policy) {
	now := metav1.NewTime(w.now)
	p.SetGeneration(1)
	p.SetCreationTimestamp(now)
	if old != nil {
		p.SetGeneration(old.GetGeneration() + 1)
		p.SetCreationTimestamp(old.GetCreationTimestamp())
		p.PropagationStatus().ObservedTime = &now
	}
	p.PropagationStatus().ObservedGeneration = p.GetGeneration()
	p.SetResourceVersion(w.revise())
	w.policies[k] = p
}

// revise returns the next resource version.
func (w *world) revise() string {
	w.revision++
	return strconv.Itoa(w.revision)
}

func (w *world) applyOverride(k string, data []byte, o policyv1alpha1.Override) error {
	if err := yaml.UnmarshalStrict(data, o); err != nil {
		return err
	}
	validate.DefaultOverride(o)
	if errs, _ := validate.Override(o, nil); len(errs) > 0 {
		return errs.ToAggregate()
	}
	w.overrides[k] = o
	return nil
}

// edit Kind ns/name: change what is stored, by a merge patch.
func (w *world) editObject(args []string, body string) error {
	k := strings.Join(args, " ")
	var stored any
	if p := w.policies[k]; p != nil {
		stored = p
	} else if obj := w.templates[k]; obj != nil {
		stored = obj.Object
	} else {
		return fmt.Errorf("no %s", k)
	}
	before, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	patch, err := yaml.YAMLToJSON([]byte(body))
	if err != nil {
		return err
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		return err
	}
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(after, &obj.Object); err != nil {
		return err
	}
	obj.SetKind(args[0])
	return w.applyObject(obj, after)
}
