package members

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/flotilla-io/flotilla/internal/members/informer"
	"github.com/flotilla-io/flotilla/internal/ownership"
	"github.com/flotilla-io/flotilla/policies/author"
)

// Sender writes to a member in somebody's name, with no more rights than the member
// gives him. Its verbs are those of Member.
type Sender interface {
	Apply(ctx context.Context, desired *unstructured.Unstructured) (*Observed, error)
	// Try reports whether Apply would go through. Nothing is changed.
	Try(ctx context.Context, desired *unstructured.Unstructured) error
	Patch(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, patch []byte) error
}

// As returns a Sender that can send nothing but in the name of somebody. It is made
// anew each time: it is cheap, and there may be any number of them.
func (m *Member) As(who author.Account) (Sender, error) {
	if who.User == "" {
		return nil, fmt.Errorf("act in %s: %w", m.name, author.ErrUnknown)
	}
	client := &http.Client{Transport: introducing{who, m.http.Transport}, CheckRedirect: m.http.CheckRedirect, Timeout: m.http.Timeout}
	as, err := m.codec.Client(client)
	if err != nil {
		return nil, fmt.Errorf("act in %s as %s: %w", m.name, who.User, err)
	}
	return sender{m, as}, nil
}

// introducing says with each request in whose name it is.
type introducing struct {
	who  author.Account
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (i introducing) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Impersonate-User", i.who.User)
	req.Header.Del("Impersonate-Group")
	for _, group := range i.who.Groups {
		req.Header.Add("Impersonate-Group", group)
	}
	return i.next.RoundTrip(req)
}

// WrappedRoundTripper lets callers find the transport below.
func (i introducing) WrappedRoundTripper() http.RoundTripper { return i.next }

// sender writes to a member through a client of its own.
type sender struct {
	member *Member
	as     dynamic.Interface
}

// own is the Sender of the hub itself.
func (m *Member) own() sender { return sender{m, m.dynamic} }

// Apply implements Sender.
func (s sender) Apply(ctx context.Context, desired *unstructured.Unstructured) (*Observed, error) {
	answer, err := s.send(ctx, desired, applying())
	if err != nil {
		return nil, err
	}
	return s.member.informer.Wrote(desired.GroupVersionKind(), answer)
}

// Try implements Sender.
func (s sender) Try(ctx context.Context, desired *unstructured.Unstructured) error {
	options := applying()
	options.DryRun = []string{metav1.DryRunAll}
	_, err := s.send(ctx, desired, options)
	return err
}

func applying() metav1.PatchOptions {
	return metav1.PatchOptions{
		FieldManager:    ownership.FieldManager,
		Force:           ptr.To(true),
		FieldValidation: metav1.FieldValidationIgnore, // warnings would reach nobody, and cost a second look at each field
	}
}

func (s sender) send(ctx context.Context, desired *unstructured.Unstructured, o metav1.PatchOptions) (*unstructured.Unstructured, error) {
	gvk := desired.GroupVersionKind()
	resource, err := s.resource(ctx, gvk, desired.GetNamespace())
	if err != nil {
		return nil, err
	}
	content, err := desired.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", gvk.Kind, desired.GetName(), err)
	}
	answer, err := resource.Patch(ctx, desired.GetName(), types.ApplyPatchType, content, o)
	return answer, s.explain(err, gvk)
}

// Patch implements Sender.
func (s sender) Patch(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, patch []byte) error {
	resource, err := s.resource(ctx, gvk, key.Namespace)
	if err != nil {
		return err
	}
	_, err = resource.Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: ownership.FieldManager})
	s.member.informer.Undid(gvk, key)
	return s.explain(err, gvk)
}

func (s sender) resource(ctx context.Context, gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	kind, err := s.kind(ctx, gvk)
	if err != nil {
		return nil, err
	}
	if !kind.Namespaced {
		return s.as.Resource(kind.Resource), nil
	}
	return s.as.Resource(kind.Resource).Namespace(namespace), nil
}

// kind returns how the member serves a kind.
func (s sender) kind(ctx context.Context, gvk schema.GroupVersionKind) (informer.Kind, error) {
	kind, err := s.member.informer.Lookup(ctx, gvk)
	if meta.IsNoMatchError(err) {
		return kind, fmt.Errorf("%w: %s", ErrNotServed, gvk)
	}
	return kind, err
}

// definitionLeaves is how a member says that it is deleting the definition of a kind; it has
// no type.
const definitionLeaves = "not allowed while custom resource definition is terminating"

// explain distinguishes the ways in which a member answers "not found": the object,
// its namespace, or its kind; and what no rights would help against.
func (s sender) explain(err error, gvk schema.GroupVersionKind) error {
	if apierrors.IsForbidden(err) && strings.HasSuffix(err.Error(), definitionLeaves) {
		return fmt.Errorf("%w: %s", ErrDefinitionLeaves, gvk)
	}
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return err
	}
	details := status.Status().Details
	switch {
	case details == nil || details.Name == "":
		s.member.informer.Forget(gvk)
		return fmt.Errorf("%w: %s", ErrNotServed, gvk)
	case details.Kind == "namespaces" && gvk.Kind != "Namespace":
		return fmt.Errorf("%w: %s", ErrNoNamespace, details.Name)
	default:
		return err
	}
}
