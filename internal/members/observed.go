package members

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// mostStatus bounds the reflected status of one object in bytes; a larger one is
// left out, so that no member can fill the hub.
const mostStatus = 256 << 10

// Observed is what is kept of an object in a member.
type Observed struct {
	// ObjectMeta holds name, namespace, UID, resource version, generation and
	// deletion timestamp only.
	metav1.ObjectMeta
	// Managed says whether the object carries karmada.io/managed=true.
	Managed bool
	// Work is the Work that the object's annotations name; zero for none. A
	// member may write there what it likes.
	Work types.NamespacedName
	// Owned is the OwnedHash of the object.
	Owned string
	// Status is the reflected status; nil where there is none.
	Status *runtime.RawExtension
	// Health is how the object does.
	Health workv1alpha1.ResourceHealth
}

// Interpreter reads status and health from a member's object.
type Interpreter interface {
	// ReflectStatus returns what of the object's status goes back to the hub;
	// nil for nothing.
	ReflectStatus(observed *unstructured.Unstructured) (*runtime.RawExtension, error)
	// Health judges the object. An object that it knows no rule for is healthy.
	Health(observed *unstructured.Unstructured) (workv1alpha1.ResourceHealth, error)
}

// Marks returns what an object says about itself and who it belongs to, without
// its fields, status and health.
func Marks(obj *unstructured.Unstructured) *Observed {
	annotations := obj.GetAnnotations()
	return &Observed{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         obj.GetNamespace(),
			Name:              obj.GetName(),
			UID:               obj.GetUID(),
			ResourceVersion:   obj.GetResourceVersion(),
			Generation:        obj.GetGeneration(),
			DeletionTimestamp: obj.GetDeletionTimestamp(),
		},
		Managed: obj.GetLabels()[workv1alpha2.ManagedByKarmadaLabel] == workv1alpha2.ManagedByKarmadaLabelValue,
		Work: types.NamespacedName{
			Namespace: annotations[workv1alpha2.WorkNamespaceAnnotation],
			Name:      annotations[workv1alpha2.WorkNameAnnotation],
		},
	}
}

// trim reduces an object to what is kept of it.
func trim(obj *unstructured.Unstructured, interpreter Interpreter) (*Observed, error) {
	out := Marks(obj)
	var err error
	if out.Owned, err = OwnedHash(obj); err != nil {
		return nil, err
	}
	out.judge(obj, interpreter)
	return out, nil
}

// judge reads status and health. An object that the interpreter has no answer
// for, or stumbles over, is in unknown health: members may send what they like.
func (o *Observed) judge(obj *unstructured.Unstructured, interpreter Interpreter) {
	defer func() {
		if stumbled := recover(); stumbled != nil {
			o.Status, o.Health = nil, workv1alpha1.ResourceUnknown
		}
	}()
	health, err := interpreter.Health(obj)
	if err != nil {
		health = workv1alpha1.ResourceUnknown
	}
	if o.Status, err = reflected(obj, interpreter); err != nil {
		health = workv1alpha1.ResourceUnknown
	}
	o.Health = health
}

func reflected(obj *unstructured.Unstructured, interpreter Interpreter) (*runtime.RawExtension, error) {
	status, err := interpreter.ReflectStatus(obj)
	if err != nil || status == nil {
		return nil, err
	}
	if status.Raw == nil && status.Object != nil {
		if status.Raw, err = json.Marshal(status.Object); err != nil {
			return nil, err
		}
	}
	if len(status.Raw) > mostStatus {
		return nil, fmt.Errorf("the status has %d bytes, at most %d are reflected", len(status.Raw), mostStatus)
	}
	return &runtime.RawExtension{Raw: status.Raw}, nil
}

// Same says whether two values of one type are the same, semantically. What
// members reported compares as JSON, which servers write as they like.
func Same[T any](a, b T) bool { return semantic.DeepEqual(a, b) }

var semantic = func() conversion.Equalities {
	e := equality.Semantic.Copy()
	if err := e.AddFunc(SameJSON); err != nil {
		panic(err) // a constant
	}
	return e
}()

// SameJSON says whether two raw values are the same JSON, however it is written.
func SameJSON(a, b runtime.RawExtension) bool {
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	var x, y any
	if utiljson.Unmarshal(a.Raw, &x) != nil || utiljson.Unmarshal(b.Raw, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}
