package order_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/sources/build/order"
)

// TestCompare: what others need comes first, webhooks last, kinds that are not known between, and equal kinds by name.
func TestCompare(t *testing.T) {
	var objects []*unstructured.Unstructured
	for _, of := range [][2]string{{"ValidatingWebhookConfiguration", "a"}, {"Widget", "a"}, {"Deployment", "b"}, {"Deployment", "a"}, {"Secret", "a"}, {"Namespace", "z"}, {"PropagationPolicy", "a"}} {
		obj := &unstructured.Unstructured{}
		obj.SetKind(of[0])
		obj.SetName(of[1])
		objects = append(objects, obj)
	}
	slices.SortFunc(objects, order.Compare)
	var got []string
	for _, obj := range objects {
		got = append(got, obj.GetKind()+" "+obj.GetName())
	}
	want := []string{"Namespace z", "PropagationPolicy a", "Secret a", "Deployment a", "Deployment b", "Widget a", "ValidatingWebhookConfiguration a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
