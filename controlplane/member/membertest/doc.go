// Package membertest gives a test a simulated member cluster.
//
// What goes in: a test and what the member should be like. What comes out: a running member on a free port, in the
// test's own process, which ends with the test. It never outlives the test and keeps nothing outside its folder.
package membertest
