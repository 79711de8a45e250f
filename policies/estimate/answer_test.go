package estimate

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

func TestAnswersThatCannotBeTrue(t *testing.T) {
	cases := map[string]struct {
		fits int32
		pods int64
		bad  bool
	}{
		"less than nothing":               {fits: -1, pods: 10, bad: true},
		"nothing":                         {fits: 0, pods: 10},
		"more than it reports just now":   {fits: 100, pods: 10},
		"far more than it has places for": {fits: 101, pods: 10, bad: true},
		"no bound":                        {fits: math.MaxInt32, pods: 10},
		"of a cluster that reports none":  {fits: 1_000_000, pods: 0},
		"of one that reports garbage":     {fits: 1_000_000, pods: math.MaxInt64},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := Plausible(tc.fits, tc.pods); errors.Is(err, ErrAbsurd) != tc.bad {
				t.Errorf("refused: %v, want %t", err, tc.bad)
			}
		})
	}
}

func TestAnOldAnswerIsLessByWhatWasAssumedSince(t *testing.T) {
	half := &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}}
	whole := &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
	then, now := LoadOf(4, half), LoadOf(4, half).Plus(LoadOf(3, half))
	cases := map[string]struct {
		answer Answer
		more   Load
		want   Answer
	}{
		"nothing was assumed":          {answer: Answer{Fits: 5}, want: Answer{Fits: 5, Age: time.Minute}},
		"three halves are two wholes":  {answer: Answer{Fits: 5, Age: time.Minute}, more: now.Minus(then), want: Answer{Fits: 2, Age: 2 * time.Minute}}, // three pods
		"what was assumed then counts": {answer: Answer{Fits: 5}, more: then.Minus(now), want: Answer{Fits: 5, Age: time.Minute}},
		"never less than nothing":      {answer: Answer{Fits: 1}, more: now, want: Answer{Fits: 0, Age: time.Minute}},
		"no bound stays none":          {answer: Answer{Fits: math.MaxInt32}, more: now, want: Answer{Fits: math.MaxInt32, Age: time.Minute}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.answer.Since(time.Minute, NeedOf(whole), tc.more)); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}
