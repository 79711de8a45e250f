package proxy

import (
	"testing"
	"time"
)

// TestAClusterThatIsForgottenHoldsUpNoOther has a request to a cluster wait for
// its Secret, with the entry locked, while the cluster is forgotten.
func TestAClusterThatIsForgottenHoldsUpNoOther(t *testing.T) {
	p := New(Options{})
	slow := p.entry("slow")
	forgotten, reached := make(chan struct{}), make(chan struct{})
	go func() {
		p.forget("slow")
		close(forgotten)
	}()
	go func() {
		for p.known()["slow"] != nil {
			time.Sleep(time.Millisecond) // forget has yet to begin
		}
		p.entry("other").mu.Unlock()
		close(reached)
	}()
	select {
	case <-reached:
	case <-time.After(time.Minute):
		t.Error("another cluster waits for the one that is forgotten")
	}
	slow.mu.Unlock()
	<-forgotten
	<-reached
	if !slow.gone {
		t.Error("the entry is in use still")
	}
}

// TestWhoComesWhileTheProxyClosesIsTurnedAway has it close while a request waits
// for a Secret.
func TestWhoComesWhileTheProxyClosesIsTurnedAway(t *testing.T) {
	p := New(Options{})
	slow := p.entry("slow")
	closed, refused := make(chan struct{}), make(chan struct{})
	go func() {
		p.Close()
		close(closed)
	}()
	go func() {
		for len(p.known()) > 0 {
			time.Sleep(time.Millisecond) // Close has yet to begin
		}
		if p.entry("other") != nil {
			t.Error("a cluster is taken up by a proxy that is closed")
		}
		close(refused)
	}()
	select {
	case <-refused:
	case <-time.After(time.Minute):
		t.Error("who comes waits for the cluster that is closed")
	}
	slow.mu.Unlock()
	<-closed
	<-refused
}
