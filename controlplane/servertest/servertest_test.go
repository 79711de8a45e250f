package servertest_test

import (
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

func TestStart(t *testing.T) {
	begin := time.Now()
	e := servertest.New(t)
	t.Logf("ready after %v", time.Since(begin))
	t.Log(e.QuietRevision(t))
}
