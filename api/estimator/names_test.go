package estimator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/api/estimator"
)

// TestNames: service and messages have the names that Karmada's files give them; peers that are generated from those look
// them up by name.
func TestNames(t *testing.T) {
	got := map[string]string{"service": estimator.Estimator_ServiceDesc.ServiceName}
	for _, m := range estimator.Estimator_ServiceDesc.Methods {
		got[m.MethodName] = ""
	}
	messages := estimator.File_api_estimator_estimator_proto.Messages()
	for i := range messages.Len() {
		got[string(messages.Get(i).FullName())] = ""
	}
	want := map[string]string{"service": "github.com.karmada_io.karmada.pkg.estimator.service.Estimator"}
	for _, method := range []string{"MaxAvailableReplicas", "MaxAvailableComponentSets", "GetUnschedulableReplicas"} {
		want[method] = ""
	}
	for _, name := range []string{
		"AssumedWorkload", "Component", "ComponentReplicaRequirements", "MaxAvailableComponentSetsRequest", "MaxAvailableComponentSetsResponse",
		"MaxAvailableReplicasRequest", "MaxAvailableReplicasResponse", "NodeClaim", "ObjectReference", "ReplicaRequirements",
		"UnschedulableReplicasRequest", "UnschedulableReplicasResponse",
	} {
		want["github.com.karmada_io.karmada.pkg.estimator.pb."+name] = ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
