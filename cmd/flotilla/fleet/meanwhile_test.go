package fleet_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

func TestMeanwhile(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "namespaces"}, "kube-system", errors.New("the object has been modified"))
	cases := map[string]struct {
		err  error
		want string
	}{
		"something was changed": {fmt.Errorf("claim the cluster: %w", conflict),
			"somebody else works on cluster east at the same time, and changed namespaces kube-system first: run the same again, it goes on from what is there by then"},
		"something was made": {apierrors.NewAlreadyExists(secrets, "east"),
			"somebody else works on cluster east at the same time, and changed secrets east first: run the same again, it goes on from what is there by then"},
		"something else": {apierrors.NewNotFound(secrets, "east"), `secrets "east" not found`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := fleet.Meanwhile("cluster east", tc.err)
			if got.Error() != tc.want {
				t.Errorf("it says\n%v\nwant\n%s", got, tc.want)
			}
			if !errors.Is(got, tc.err) {
				t.Error("what it came of is lost")
			}
		})
	}
	if err := fleet.Meanwhile("cluster east", nil); err != nil {
		t.Errorf("of no error it says %v", err)
	}
}
