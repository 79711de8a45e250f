package hub_test

import (
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/tenure"
)

// TestTheIdentityIsLogged checks that the log shows which replica has an identity
// that is in the lease.
func TestTheIdentityIsLogged(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	var logged []string
	log := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
	if _, err := hub.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, runtime.NewScheme(), hub.Options{Log: log, Tenure: tenure.New(clock.RealClock{})}); err != nil {
		t.Logf("nobody is there to be connected to: %v", err)
	}
	for _, line := range logged {
		if strings.Contains(line, hub.Competing) && strings.Contains(line, `"identity"="`+host+"_") {
			return
		}
	}
	t.Errorf("logged %q, want the identity in it", logged)
}
