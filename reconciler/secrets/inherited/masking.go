package inherited

import (
	"context"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
)

// Recorder returns one that hides in Events about an object what the object got of Secrets.
func (k *Known) Recorder(of loop.Recorder) loop.Recorder { return recorder{of, k} }

type recorder struct {
	loop.Recorder
	known *Known
}

// Event implements loop.Recorder.
func (r recorder) Event(obj runtime.Object, eventType, reason, message string) {
	if of, is := obj.(client.Object); is {
		message = r.known.Hide(of, message, revisions(of)...)
	}
	r.Recorder.Event(obj, eventType, reason, message)
}

// Client returns one that hides the same in the conditions that it writes.
func (k *Known) Client(of client.Client) client.Client { return masking{of, k} }

type masking struct {
	client.Client
	known *Known
}

// Status implements client.Client.
func (t masking) Status() client.SubResourceWriter { return statuses{t.Client.Status(), t.known} }

type statuses struct {
	client.SubResourceWriter
	known *Known
}

// conditioned is an object with conditions, as Flux's are.
type conditioned interface {
	client.Object
	GetConditions() []metav1.Condition
	SetConditions([]metav1.Condition)
}

// Patch implements client.SubResourceWriter. What changes nothing once it is hidden is not sent.
func (s statuses) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	of, is := obj.(conditioned)
	if !is || !contains(obj) {
		return s.SubResourceWriter.Patch(ctx, obj, patch, opts...)
	}
	conditions := of.GetConditions()
	for n := range conditions {
		conditions[n].Message = s.known.Hide(obj, conditions[n].Message, revisions(obj)...)
	}
	of.SetConditions(conditions)
	if data, err := patch.Data(obj); err == nil && string(data) == "{}" {
		return nil
	}
	return s.SubResourceWriter.Patch(ctx, obj, patch, opts...)
}

// revisions are what is shown of an object anyway.
func revisions(of client.Object) []string {
	source, is := of.(interface{ GetArtifact() *meta.Artifact })
	if !is || source.GetArtifact() == nil {
		return nil
	}
	return []string{source.GetArtifact().Revision}
}
