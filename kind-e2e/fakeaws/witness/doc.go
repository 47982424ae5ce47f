// SPDX-License-Identifier: Apache-2.0

// Package witness asks another implementation of AWS, moto, whether the fake endpoint speaks as AWS does: a fake written
// by the hand that wrote its client would share its misreadings. It runs the same SDK calls against both and compares the
// decoded structs: every field that the fake fills must be there in moto's reply with the same value, or be listed with
// the reason why not.
//
// It decides nothing about the product and must not import it. Only its tests call it; they need Python's moto, and fail
// without it where JIT_MOTO=required, as CI with moto says.
package witness
