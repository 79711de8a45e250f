package overrun_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/flotilla-io/flotilla/sources/build/overrun"
)

func TestWhoMayBegin(t *testing.T) {
	type of = *overrun.Build
	for name, tc := range map[string]struct {
		before     func(begin func(tenant string) of)
		shop, blog bool // whether they are full
	}{
		"nothing was built":           {before: func(func(string) of) {}},
		"builds that somebody awaits": {before: func(begin func(string) of) { begin("shop"); begin("shop"); begin("blog") }},
		"one that nobody awaits":      {before: func(begin func(string) of) { begin("shop").Leave() }, shop: true},
		"one that ended after that":   {before: func(begin func(string) of) { b := begin("shop"); b.Leave(); b.End(); b.End() }},
		"one that ended before that":  {before: func(begin func(string) of) { b := begin("shop"); b.End(); b.Leave() }},
		"one of two of a tenant ended": {before: func(begin func(string) of) {
			b, other := begin("shop"), begin("shop")
			other.Leave()
			b.Leave()
			b.End()
		}, shop: true},
		"it is left twice":              {before: func(begin func(string) of) { b := begin("news"); b.Leave(); b.Leave() }},
		"others have as many as may be": {before: func(begin func(string) of) { begin("news").Leave(); begin("docs").Leave() }, shop: true, blog: true},
		"others had as many as may be":  {before: func(begin func(string) of) { begin("news").Leave(); b := begin("docs"); b.Leave(); b.End() }},
	} {
		t.Run(name, func(t *testing.T) {
			o := overrun.New(2)
			tc.before(func(tenant string) of {
				b, err := o.Begin(tenant)
				if err != nil {
					t.Fatal(err)
				}
				return b
			})
			full := func(tenant string) bool {
				_, err := o.Begin(tenant)
				return errors.Is(err, overrun.ErrFull)
			}
			if shop, blog := full("shop"), full("blog"); shop != tc.shop || blog != tc.blog {
				t.Errorf("full for shop %t, for blog %t; want %t, %t", shop, blog, tc.shop, tc.blog)
			}
		})
	}
}

func TestAwait(t *testing.T) {
	o := overrun.New(2)
	first, err := o.Begin("shop")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	begun, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		<-begun
		cancel()
	}()
	err = first.Await(ctx, func() {
		close(begun)
		<-release
		close(ended)
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("awaited: %v", err)
	}
	if _, err := o.Begin("shop"); !errors.Is(err, overrun.ErrFull) {
		t.Fatalf("a second one beside it: %v", err)
	}
	close(release)
	<-ended
	for err = overrun.ErrFull; err != nil; _, err = o.Begin("shop") { // what has ended is told a moment later
		runtime.Gosched()
	}
}
