package webhook

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// Bounds of what a server may answer.
const (
	maxAnswer     = 4 << 20
	maxObject     = 3 << 20
	maxPatchSteps = 10_000
	maxFailure    = 259 // bytes, mark included, of what a server says of its failure
)

// question is what a rule wants to know.
type question struct {
	operation        configv1alpha1.InterpreterOperation
	object, observed kinds.Object
	replicas         *int32
	items            []workv1alpha2.AggregatedStatusItem
}

// key distinguishes questions.
type key [sha256.Size]byte

// sent is a question as it is sent, but for the uid.
type sent struct {
	request configv1alpha1.ResourceInterpreterRequest
	uid     types.UID
	// course is shared by questions that differ only in what goes on changing while
	// one of them is answered: statuses. It is zero for those that stand alone.
	sequence key
}

// size is about how many bytes a question holds in memory.
func (s *sent) size() int64 {
	n := len(s.request.Object.Raw)
	if o := s.request.ObservedObject; o != nil {
		n += len(o.Raw)
	}
	for i := range s.request.AggregatedStatus {
		if status := s.request.AggregatedStatus[i].Status; status != nil {
			n += len(status.Raw)
		}
	}
	return int64(n)
}

// encode returns the body of the call.
func (s *sent) encode() ([]byte, error) {
	request := s.request
	request.UID = s.uid
	return json.Marshal(configv1alpha1.ResourceInterpreterContext{
		TypeMeta: metav1.TypeMeta{APIVersion: configv1alpha1.GroupVersion.String(), Kind: contextKind},
		Request:  &request,
	})
}

const contextKind = "ResourceInterpreterContext"

// write returns a question as it is sent to a hook, and its key. It keeps
// nothing of the objects.
func write(hook string, q question) (*sent, key, error) {
	gvk := q.object.GroupVersionKind()
	out := &sent{request: configv1alpha1.ResourceInterpreterRequest{
		Kind:      metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind},
		Name:      q.object.GetName(),
		Namespace: q.object.GetNamespace(),
		Operation: q.operation,
	}}
	r := &out.request
	var err error
	if r.Object.Raw, err = content(q.object); err != nil {
		return nil, key{}, err
	}
	if q.observed != nil {
		r.ObservedObject = &runtime.RawExtension{}
		if r.ObservedObject.Raw, err = content(q.observed); err != nil {
			return nil, key{}, err
		}
	}
	if q.replicas != nil {
		n := *q.replicas
		r.DesiredReplicas = &n
	}
	for i := range q.items {
		r.AggregatedStatus = append(r.AggregatedStatus, *q.items[i].DeepCopy())
	}
	k, err := keyOf(hook, r)
	if err == nil {
		out.sequence, err = sequenceOf(hook, q, *r)
	}
	return out, k, err
}

// courseOf returns the course of a question.
func sequenceOf(hook string, q question, r configv1alpha1.ResourceInterpreterRequest) (key, error) {
	var err error
	switch q.operation {
	case configv1alpha1.InterpreterOperationRetain:
		if r.ObservedObject == nil {
			return key{}, nil
		}
		r.ObservedObject = &runtime.RawExtension{}
		r.ObservedObject.Raw, err = content(rules.Without(q.observed, "status"))
	case configv1alpha1.InterpreterOperationAggregateStatus:
		r.AggregatedStatus = nil
		r.Object.Raw, err = content(rules.Without(q.object, "status"))
	default:
		return key{}, nil
	}
	if err != nil {
		return key{}, err
	}
	return keyOf("course of "+hook, &r)
}

// keyOf hashes a hook and all that it is asked. Each part comes with its length,
// so that no two questions are one.
func keyOf(hook string, r *configv1alpha1.ResourceInterpreterRequest) (key, error) {
	items, err := json.Marshal(r.AggregatedStatus)
	if err != nil {
		return key{}, fmt.Errorf("encode what clusters report: %w", err)
	}
	var replicas, observed []byte
	if r.DesiredReplicas != nil {
		replicas = binary.BigEndian.AppendUint32(nil, uint32(*r.DesiredReplicas)) //nolint:gosec // any bits will do
	}
	if r.ObservedObject != nil {
		observed = r.ObservedObject.Raw
	}
	sum := sha256.New()
	for _, part := range [][]byte{[]byte(hook), []byte(r.Operation), r.Object.Raw, observed, replicas, items} {
		_, _ = sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		_, _ = sum.Write(part)
	}
	return key(sum.Sum(nil)), nil
}

// content returns an object as it is sent: without what changes though nothing
// has changed.
func content(obj kinds.Object) ([]byte, error) {
	out := maps.Clone(obj.Object)
	if metadata, ok := out["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "resourceVersion")
		delete(metadata, "managedFields")
		out["metadata"] = metadata
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	return data, nil
}

// response is an answer that was checked.
type response struct {
	*configv1alpha1.ResourceInterpreterResponse
	patch jsonpatch.Patch
	// about is the object that was asked about where it is not the one that is asked
	// about now; nil where it is.
	about []byte
}

// read checks an answer. One that does not say what it is, is taken for what was asked
// for: the library that most webhooks are made with leaves that out. What a rule reads of it afterwards is there.
func read(body []byte, q *sent) (*response, error) {
	var in configv1alpha1.ResourceInterpreterContext
	if err := utiljson.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("its answer cannot be read: %s", short(err.Error()))
	}
	if version := configv1alpha1.GroupVersion.String(); cmp.Or(in.APIVersion, version) != version || cmp.Or(in.Kind, contextKind) != contextKind {
		return nil, fmt.Errorf("its answer is no %s of %s", contextKind, configv1alpha1.GroupVersion)
	}
	r := in.Response
	switch {
	case r == nil:
		return nil, errors.New("its answer has no response")
	case r.UID != q.uid:
		return nil, errors.New("its answer is to another question: response.uid differs")
	case !r.Successful:
		return nil, refusal(r.Status)
	}
	out := &response{ResourceInterpreterResponse: r}
	return out, out.check(q.request.Operation)
}

// refusal says what a server says of its failure.
func refusal(s *configv1alpha1.RequestStatus) error {
	switch {
	case s == nil || s.Message == "" && s.Code == 0:
		return errors.New("it could not answer, and does not say why")
	case s.Message == "":
		return fmt.Errorf("it could not answer: code %d", s.Code)
	case s.Code == 0:
		return fmt.Errorf("it could not answer: %s", short(s.Message))
	default:
		return fmt.Errorf("it could not answer: %s (code %d)", short(s.Message), s.Code)
	}
}

// short returns a text of others on one line, cut.
func short(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	return excerpt.Bytes(text, maxFailure)
}

// check says what is missing for an operation.
func (r *response) check(op configv1alpha1.InterpreterOperation) error {
	missing := func(field string) error { return fmt.Errorf("its answer has no response.%s", field) }
	switch op {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		if r.Replicas == nil {
			return missing("replicas")
		}
		return count("response.replicas", *r.Replicas)
	case configv1alpha1.InterpreterOperationInterpretComponent:
		return r.checkComponents()
	case configv1alpha1.InterpreterOperationInterpretStatus:
		if r.RawStatus == nil || len(r.RawStatus.Raw) == 0 {
			return missing("rawStatus")
		}
		_, err := r.status()
		return err
	case configv1alpha1.InterpreterOperationInterpretHealth:
		if r.Healthy == nil {
			return missing("healthy")
		}
		return nil
	case configv1alpha1.InterpreterOperationInterpretDependency:
		return r.checkDependencies()
	default:
		return r.checkPatch()
	}
}

func count(field string, n int32) error {
	if n < 0 {
		return fmt.Errorf("%s is no number of replicas: %d", field, n)
	}
	return nil
}

func (r *response) checkComponents() error {
	seen := map[string]bool{}
	for i := range r.Components {
		c := &r.Components[i]
		if c.Name == "" || seen[c.Name] {
			return fmt.Errorf("response.components[%d].name must be there, and differ from the others", i)
		}
		seen[c.Name] = true
		if err := count(fmt.Sprintf("response.components[%d].replicas", i), c.Replicas); err != nil {
			return err
		}
	}
	return nil
}

func (r *response) checkDependencies() error {
	for i := range r.Dependencies {
		d := &r.Dependencies[i]
		switch {
		case d.APIVersion == "" || d.Kind == "":
			return fmt.Errorf("response.dependencies[%d] has no apiVersion or no kind", i)
		case d.Name == "" && d.LabelSelector == nil:
			return fmt.Errorf("response.dependencies[%d] has neither name nor labelSelector", i)
		}
		if d.LabelSelector == nil {
			continue
		}
		if _, err := metav1.LabelSelectorAsSelector(d.LabelSelector); err != nil {
			return fmt.Errorf("response.dependencies[%d].labelSelector: %s", i, short(err.Error()))
		}
	}
	return nil
}

// checkPatch decodes the patch; without one, nothing is to be changed.
func (r *response) checkPatch() error {
	switch {
	case len(r.Patch) == 0 && r.PatchType == nil:
		return nil
	case r.PatchType == nil:
		return errors.New("its answer has a response.patch and no response.patchType")
	case *r.PatchType != configv1alpha1.PatchTypeJSONPatch:
		return fmt.Errorf("response.patchType is %q: %s is known", short(string(*r.PatchType)), configv1alpha1.PatchTypeJSONPatch)
	case len(r.Patch) == 0:
		return errors.New("its answer has a response.patchType and no response.patch")
	}
	var err error
	if r.patch, err = jsonpatch.DecodePatch(r.Patch); err != nil {
		return fmt.Errorf("response.patch cannot be read: %s", short(err.Error()))
	}
	if len(r.patch) > maxPatchSteps {
		return fmt.Errorf("response.patch has more than %d operations", maxPatchSteps)
	}
	return nil
}

// status returns the status that is reported.
func (r *response) status() (map[string]any, error) {
	var out map[string]any
	if err := utiljson.Unmarshal(r.RawStatus.Raw, &out); err != nil {
		return nil, errors.New("response.rawStatus is no object")
	}
	return out, nil
}

func (r *response) components() []workv1alpha2.Component {
	out := make([]workv1alpha2.Component, len(r.Components))
	for i := range r.Components {
		r.Components[i].DeepCopyInto(&out[i])
	}
	return out
}

func (r *response) dependencies() []kinds.Dependency {
	out := make([]kinds.Dependency, len(r.Dependencies))
	for i, d := range r.Dependencies {
		out[i] = kinds.Dependency{APIVersion: d.APIVersion, Kind: d.Kind, Namespace: d.Namespace, Name: d.Name, LabelSelector: d.LabelSelector.DeepCopy()}
	}
	return out
}

// patched asks and returns a copy of obj with the patch that is answered. Where
// the answer is one to the question before, it says so with kinds.Pending.
func patched(obj kinds.Object, ask func(question) (*response, error), q question) (kinds.Object, error) {
	answer, err := ask(q)
	if answer == nil {
		return nil, err
	}
	if answer.about != nil {
		obj = &unstructured.Unstructured{}
		if wrong := utiljson.Unmarshal(answer.about, &obj.Object); wrong != nil {
			return nil, fmt.Errorf("read back the question before: %w", wrong)
		}
	}
	if len(answer.patch) == 0 {
		return obj.DeepCopy(), err
	}
	out, wrong := apply(obj, answer.patch)
	if wrong != nil {
		return nil, wrong
	}
	return out, err
}

// apply returns obj with a patch. What it is, and its name, stay.
func apply(obj kinds.Object, patch jsonpatch.Patch) (out kinds.Object, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("response.patch cannot be applied: %s", short(fmt.Sprint(r)))
		}
	}()
	doc, err := content(obj)
	if err != nil {
		return nil, err
	}
	opts := jsonpatch.NewApplyOptions()
	opts.AccumulatedCopySizeLimit = maxObject
	opts.EscapeHTML = false
	if doc, err = patch.ApplyWithOptions(doc, opts); err != nil {
		return nil, fmt.Errorf("response.patch cannot be applied: %s", short(err.Error()))
	}
	if len(doc) > maxObject {
		return nil, fmt.Errorf("response.patch makes the object larger than %d bytes", maxObject)
	}
	out = &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(doc, &out.Object); err != nil || out.Object == nil {
		return nil, errors.New("response.patch makes the object something else")
	}
	if out.GroupVersionKind() != obj.GroupVersionKind() || out.GetName() != obj.GetName() || out.GetNamespace() != obj.GetNamespace() {
		return nil, errors.New("response.patch makes the object another one: it changes its kind, name or namespace")
	}
	if version := obj.GetResourceVersion(); version != "" {
		out.SetResourceVersion(version)
	}
	return out, nil
}

// statusOf returns the status of an object that a patch made.
func statusOf(obj kinds.Object) (map[string]any, error) {
	switch status := obj.Object["status"].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return status, nil
	default:
		return nil, errors.New("response.patch makes the status no object")
	}
}
