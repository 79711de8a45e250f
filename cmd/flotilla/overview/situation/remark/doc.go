// Package remark says to users what a Cluster says of itself beside whether it is ready.
//
// In go the conditions of a Cluster; out come what is the matter and what to do, in words. It reads nothing, and judges
// nothing that no condition says.
package remark
