package program

import (
	"net"
	"testing"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
)

// TestAnAddressThatIsTakenNamesItsFlag has another program where the loops would serve.
func TestAnAddressThatIsTakenNamesItsFlag(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address := listener.Addr().String()
	loops, flags := loopOptions{dataDir: t.TempDir(), log: logr.Discard()}, pflag.NewFlagSet("", pflag.ContinueOnError)
	loops.addFlags(flags)
	if err := flags.Parse([]string{"--artifact-address", address}); err != nil {
		t.Fatal(err)
	}
	want := "listen tcp " + address + ": bind: address already in use; choose another --artifact-address"
	if err := loops.run(t.Context(), &rest.Config{}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
