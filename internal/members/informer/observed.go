package informer

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/ownership"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// mostStatus bounds the reflected status of one object in bytes; a larger one is
// left out, so that no member can fill the hub.
const mostStatus = 256 << 10

// Observed is what is kept of an object in a member.
type Observed struct {
	// ObjectMeta holds name, namespace, UID, resource version, generation and
	// deletion timestamp only.
	metav1.ObjectMeta
	// Managed reports whether the object carries karmada.io/managed=true.
	Managed bool
	// Work is the Work that the object's annotations name; zero for none. A
	// member may write there what it likes.
	Work types.NamespacedName
	// Owner is what the object says of whose it is, besides names.
	Owner hubclaim.Ownership
	// Owned is the ownership.Hash of the object.
	Owned string
	// Scaled reports whether something in the member, no person, sets the number of
	// replicas through the subresource for that.
	Scaled bool
	// Status is the reflected status; nil where there is none.
	Status *runtime.RawExtension
	// Health is how the object does.
	Health workv1alpha1.ResourceHealth
	// Pending says that the answers about status and health are on their way:
	// what was known of them before stays.
	Pending bool
	// Fault is the error of the rule that fails for the object, at most
	// mostFault bytes; empty where none does. Health is unknown then.
	Fault string

	// common keeps the texts that many objects have for as long as one has them.
	common unique.Handle[common]
	// after is when to ask again, if Pending, or if the rule that fails may answer
	// otherwise then; zero for not at all.
	after time.Duration
}

// open reports whether there may be another answer though the object stays the same.
func (o *Observed) open() bool { return o.Pending || o.after > 0 }

func (o *Observed) key() types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}

// mostFault is how many bytes of the error of a rule are kept.
const mostFault = 512

// Interpreter reads status and health from a member's object.
type Interpreter interface {
	// ReflectStatus returns what of the object's status goes back to the hub;
	// nil for nothing.
	ReflectStatus(observed *unstructured.Unstructured) (*runtime.RawExtension, error)
	// Health judges the object. An object that it knows no rule for is healthy.
	Health(observed *unstructured.Unstructured) (workv1alpha1.ResourceHealth, error)
}

// common are the texts of an object that many others have, too.
type common struct{ namespace, workNamespace, hub string }

// MetadataOf returns what an object says about itself and who it belongs to, without
// its fields, status and health.
func MetadataOf(obj *unstructured.Unstructured) *Observed {
	annotations := obj.GetAnnotations()
	once := unique.Make(common{obj.GetNamespace(), annotations[workv1alpha2.WorkNamespaceAnnotation], annotations[workv1alpha2.HubAnnotation]})
	return &Observed{
		common: once,
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         once.Value().namespace,
			Name:              obj.GetName(),
			UID:               obj.GetUID(),
			ResourceVersion:   obj.GetResourceVersion(),
			Generation:        obj.GetGeneration(),
			DeletionTimestamp: obj.GetDeletionTimestamp(),
		},
		Managed: obj.GetLabels()[workv1alpha2.ManagedByKarmadaLabel] == workv1alpha2.ManagedByKarmadaLabelValue,
		Work: types.NamespacedName{
			Namespace: once.Value().workNamespace,
			Name:      annotations[workv1alpha2.WorkNameAnnotation],
		},
		Owner: hubclaim.Ownership{Hub: once.Value().hub, Work: obj.GetLabels()[workv1alpha2.WorkPermanentIDLabel]},
	}
}

// trim reduces an object to what is kept of it.
func trim(obj *unstructured.Unstructured, interpreter Interpreter) (*Observed, error) {
	out := MetadataOf(obj)
	var err error
	if out.Owned, err = ownership.Hash(obj); err != nil {
		return nil, err
	}
	out.Scaled = rules.Scaled(obj)
	out.judge(obj, interpreter)
	return out, nil
}

// judge reads status and health. An object that the interpreter has no answer
// for, or stumbles over, is in unknown health: members may send what they like.
func (o *Observed) judge(obj *unstructured.Unstructured, interpreter Interpreter) {
	defer func() {
		if stumbled := recover(); stumbled != nil {
			o.Status, o.Health, o.Pending = nil, workv1alpha1.ResourceUnknown, false
			o.Fault = fmt.Sprintf("the rules for %s do not expect this object", o.bounded(obj.GetKind()))
		}
	}()
	health, errHealth := interpreter.Health(obj)
	status, errStatus := interpreter.ReflectStatus(obj)
	for _, err := range []error{errHealth, errStatus} {
		after, awaits := kinds.Awaits(err)
		switch {
		case awaits:
			o.Pending, o.after = true, max(o.after, after)
		case err != nil && o.Fault == "":
			o.Fault, health = o.bounded(err.Error()), workv1alpha1.ResourceUnknown
		}
		var passing interface{ RetryAfter() time.Duration } // such as of a webhook that does not answer
		if errors.As(err, &passing) {
			o.after = max(o.after, passing.RetryAfter())
		}
	}
	if o.Pending {
		o.Health = workv1alpha1.ResourceUnknown
		return
	}
	var err error
	if o.Status, err = reflected(status); err != nil {
		o.Fault, health = o.bounded(err.Error()), workv1alpha1.ResourceUnknown
	}
	o.Health = health
}

func (*Observed) bounded(text string) string { return excerpt.Bytes(text, mostFault) }

// reflected returns a status as it is kept: not at all where it is too large.
func reflected(status *runtime.RawExtension) (*runtime.RawExtension, error) {
	if status == nil {
		return nil, nil
	}
	if status.Raw == nil && status.Object != nil {
		var err error
		if status.Raw, err = json.Marshal(status.Object); err != nil {
			return nil, err
		}
	}
	if len(status.Raw) > mostStatus {
		return nil, fmt.Errorf("the status has more than %d bytes, which are the most that are reflected", mostStatus)
	}
	return &runtime.RawExtension{Raw: status.Raw}, nil
}
