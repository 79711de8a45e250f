package overview

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestHeard: when an agent reported last goes by the control plane's clock, whatever the
// agent's says.
func TestHeard(t *testing.T) {
	at := time.Date(2026, 3, 5, 9, 30, 0, 0, time.UTC)
	wrote := func(ago time.Duration, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Time: ptr.To(metav1.NewTime(at.Add(-ago))), FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const renewed = `{"f:spec":{"f:holderIdentity":{},"f:renewTime":{}}}`
	for name, tc := range map[string]struct {
		says   time.Duration // how far the agent's clock is ahead
		fields []metav1.ManagedFieldsEntry
		want   time.Time
	}{
		"its clock is right":              {0, []metav1.ManagedFieldsEntry{wrote(0, renewed)}, at},
		"its clock is six hours ahead":    {6 * time.Hour, []metav1.ManagedFieldsEntry{wrote(time.Minute, renewed)}, at.Add(-time.Minute)},
		"its clock is three days behind":  {-72 * time.Hour, []metav1.ManagedFieldsEntry{wrote(time.Minute, renewed)}, at.Add(-time.Minute)},
		"somebody else labels the Lease":  {0, []metav1.ManagedFieldsEntry{wrote(time.Hour, renewed), wrote(0, `{"f:metadata":{"f:labels":{"f:a":{}}}}`)}, at.Add(-time.Hour)},
		"nothing tells who wrote it when": {time.Minute, nil, at.Add(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(at.Add(tc.says)))}}
			lease.ManagedFields = tc.fields
			if got := heard(lease); !got.Equal(tc.want) {
				t.Errorf("heard at %s, want %s", got, tc.want)
			}
		})
	}
	if got := heard(&coordinationv1.Lease{}); !got.IsZero() {
		t.Errorf("never renewed, it was heard at %s", got)
	}
}
