"""Tables of the sample flight: formats, information, parameters, events and console texts, all invented.

Topic and field names, units and C alignment are those of PX4, so that people recognise the log and tools that
know PX4 can work on it; every value, place, hash and serial number is made up.
"""

from __future__ import annotations

import json
import lzma
import zlib

Number = int | float

#: Format texts in the order in which they are written. `esc_report` is after the format that uses it, as in PX4.
FORMATS: dict[str, str] = {
    name: text.replace("\n", "")
    for name, text in {
        "actuator_outputs": "uint64_t timestamp;uint32_t noutputs;float[16] output;uint8_t[4] _padding0;",
        "battery_status": """uint64_t timestamp;float voltage_v;float current_a;float current_average_a;
float discharged_mah;float remaining;float scale;float time_remaining_s;float temperature;
float[14] voltage_cell_v;float max_cell_voltage_delta;float nominal_voltage;uint16_t capacity;
uint16_t cycle_count;uint16_t serial_number;uint16_t faults;bool connected;uint8_t cell_count;uint8_t source;
uint8_t priority;uint8_t id;bool is_powering_off;bool is_required;uint8_t warning;""",
        "camera_trigger": "uint64_t timestamp;uint64_t timestamp_utc;uint32_t seq;bool feedback;"
        "uint8_t[3] _padding0;",
        "cpuload": "uint64_t timestamp;float load;float ram_usage;",
        "esc_status": """uint64_t timestamp;uint16_t counter;uint8_t esc_count;uint8_t esc_connectiontype;
uint8_t esc_online_flags;uint8_t esc_armed_flags;uint8_t[2] _padding0;esc_report[8] esc;""",
        "event": """uint64_t timestamp;uint32_t id;uint16_t event_sequence;uint8_t[25] arguments;
uint8_t log_levels;""",
        "mavlink_log": "uint64_t timestamp;char[127] text;uint8_t severity;",
        "sensor_accel": """uint64_t timestamp;uint64_t timestamp_sample;uint32_t device_id;float x;float y;
float z;float temperature;uint32_t error_count;
uint8_t[3] clip_counter;uint8_t samples;uint8_t[4] _padding0;""",
        "sensor_combined": """uint64_t timestamp;float[3] gyro_rad;uint32_t gyro_integral_dt;
int32_t accelerometer_timestamp_relative;float[3] accelerometer_m_s2;uint32_t accelerometer_integral_dt;
uint8_t accelerometer_clipping;uint8_t gyro_clipping;uint8_t accel_calibration_count;
uint8_t gyro_calibration_count;""",
        "sensor_gps": """uint64_t timestamp;uint64_t timestamp_sample;double latitude_deg;
double longitude_deg;double altitude_msl_m;double altitude_ellipsoid_m;uint64_t time_utc_usec;
uint32_t device_id;float s_variance_m_s;float c_variance_rad;float eph;float epv;float hdop;float vdop;
int32_t noise_per_ms;int32_t jamming_indicator;float vel_m_s;float vel_n_m_s;float vel_e_m_s;float vel_d_m_s;
float cog_rad;int32_t timestamp_time_relative;float heading;float heading_offset;float heading_accuracy;
float rtcm_injection_rate;uint16_t automatic_gain_control;uint8_t fix_type;uint8_t jamming_state;
uint8_t spoofing_state;bool vel_ned_valid;uint8_t satellites_used;uint8_t selected_rtcm_instance;
bool rtcm_crc_failed;uint8_t rtcm_msg_used;uint8_t[2] _padding0;""",
        "vehicle_attitude": """uint64_t timestamp;uint64_t timestamp_sample;float[4] q;float[4] delta_q_reset;
uint8_t quat_reset_counter;uint8_t[7] _padding0;""",
        "vehicle_command_ack": """uint64_t timestamp;uint32_t command;int32_t result_param2;
uint16_t target_component;uint8_t result;uint8_t result_param1;uint8_t target_system;bool from_external;
uint8_t[2] _padding0;""",
        "vehicle_global_position": """uint64_t timestamp;uint64_t timestamp_sample;double lat;double lon;
float alt;float alt_ellipsoid;float delta_alt;float delta_terrain;float eph;float epv;float terrain_alt;
bool lat_lon_valid;bool alt_valid;uint8_t lat_lon_reset_counter;uint8_t alt_reset_counter;
uint8_t terrain_reset_counter;bool terrain_alt_valid;bool dead_reckoning;uint8_t[5] _padding0;""",
        "vehicle_land_detected": """uint64_t timestamp;bool freefall;bool ground_contact;bool maybe_landed;
bool landed;bool in_ground_effect;bool in_descend;bool has_low_throttle;bool vertical_movement;
bool horizontal_movement;bool rotational_movement;bool close_to_ground_or_skipped_check;bool at_rest;
uint8_t[4] _padding0;""",
        "vehicle_local_position": """uint64_t timestamp;uint64_t timestamp_sample;uint64_t ref_timestamp;
double ref_lat;double ref_lon;float x;float y;float z;float[2] delta_xy;float delta_z;float vx;float vy;
float vz;float z_deriv;float ax;float ay;float az;float heading;float ref_alt;float dist_bottom;
float eph;float epv;float evh;float evv;bool xy_valid;bool z_valid;bool v_xy_valid;bool v_z_valid;
uint8_t xy_reset_counter;uint8_t z_reset_counter;bool heading_good_for_control;bool xy_global;bool z_global;
bool dist_bottom_valid;bool dead_reckoning;uint8_t[5] _padding0;""",
        "vehicle_status": """uint64_t timestamp;uint64_t armed_time;uint64_t takeoff_time;
uint64_t nav_state_timestamp;uint16_t failure_detector_status;uint8_t arming_state;
uint8_t latest_arming_reason;uint8_t latest_disarming_reason;uint8_t nav_state_user_intention;
uint8_t nav_state;uint8_t hil_state;uint8_t vehicle_type;bool failsafe;bool gcs_connection_lost;
uint8_t system_type;uint8_t system_id;uint8_t component_id;bool safety_off;bool power_input_valid;
bool usb_connected;bool pre_flight_checks_pass;uint8_t[6] _padding0;""",
        "esc_report": """uint64_t timestamp;uint32_t esc_errorcount;int32_t esc_rpm;float esc_voltage;
float esc_current;float esc_temperature;uint16_t failures;uint8_t esc_address;uint8_t esc_cmdcount;
uint8_t esc_state;uint8_t actuator_function;int8_t esc_power;uint8_t[5] _padding0;""",
    }.items()
}

INFOS: dict[str, str | int] = {
    "ver_sw": "5d1f0a93be0c47e2a6615b9d02f7c83e4410a7d6",
    "ver_sw_branch": "release/1.16",
    "uint32_t ver_sw_release": 0x011000FF,
    "uint32_t ver_vendor_sw_release": 0x010002FF,
    "ver_hw": "PX4_FMU_V6C",
    "ver_hw_subtype": "V6C002001",
    "sys_name": "PX4",
    "sys_os_name": "NuttX",
    "sys_os_ver": "9a70c1de8f1342b6c5d0e7712fb84a063c9e5b21",
    "uint32_t sys_os_ver_release": 0x0B0000FF,
    "sys_toolchain": "GNU GCC",
    "sys_toolchain_ver": "13.2.1 20231009",
    "sys_mcu": "STM32H7[4|5]xxx, rev. V",
    "sys_uuid": "000600000000393438353132510400270031",
    "uint32_t ver_data_format": 2,
    "int32_t time_ref_utc": 7200,
}

#: Values in use when the log starts; ints are `int32_t`, the others `float`.
PARAMETERS: dict[str, Number] = {
    "BAT1_CAPACITY": 5200.0,
    "BAT1_N_CELLS": 4,
    "BAT1_SOURCE": 0,
    "BAT1_V_CHARGED": 4.15,
    "BAT1_V_EMPTY": 3.55,
    "BAT_CRIT_THR": 0.07,
    "BAT_EMERGEN_THR": 0.05,
    "BAT_LOW_THR": 0.2,
    "CAL_ACC0_ID": 4259850,
    "CAL_ACC0_XOFF": -0.1182,
    "CAL_ACC0_XSCALE": 0.9987,
    "CAL_ACC0_YOFF": 0.0641,
    "CAL_ACC0_ZOFF": 0.2276,
    "CAL_ACC1_ID": 2490378,
    "CAL_ACC1_XOFF": 0.0533,
    "CAL_GYRO0_ID": 4325386,
    "CAL_GYRO0_XOFF": 0.0031,
    "CAL_MAG0_ID": 396809,
    "CAL_MAG0_ROT": 0,
    "COM_ARM_WO_GPS": 0,
    "COM_DISARM_LAND": 2.0,
    "COM_DL_LOSS_T": 10,
    "COM_FLIGHT_UUID": 41,
    "COM_FLTMODE1": 8,
    "COM_RC_LOSS_T": 0.5,
    "EKF2_BARO_NOISE": 3.5,
    "EKF2_GPS_CHECK": 245,
    "EKF2_GPS_DELAY": 110.0,
    "EKF2_HGT_REF": 1,
    "EKF2_MAG_TYPE": 0,
    "FD_FAIL_P": 60,
    "FD_FAIL_R": 60,
    "GF_ACTION": 2,
    "GF_MAX_HOR_DIST": 300.0,
    "GF_MAX_VER_DIST": 60.0,
    "GPS_1_CONFIG": 201,
    "IMU_GYRO_CUTOFF": 40.0,
    "IMU_GYRO_RATEMAX": 400,
    "LNDMC_Z_VEL_MAX": 0.25,
    "LND_FLIGHT_T_HI": 0,
    "LND_FLIGHT_T_LO": 191204377,
    "MAV_SYS_ID": 1,
    "MC_PITCHRATE_P": 0.14,
    "MC_PITCH_P": 6.5,
    "MC_ROLLRATE_D": 0.0027,
    "MC_ROLLRATE_I": 0.2,
    "MC_ROLLRATE_P": 0.145,
    "MC_ROLL_P": 6.5,
    "MC_YAW_P": 2.8,
    "MIS_TAKEOFF_ALT": 12.0,
    "MPC_LAND_SPEED": 0.7,
    "MPC_THR_HOVER": 0.42,
    "MPC_TILTMAX_AIR": 35.0,
    "MPC_TKO_SPEED": 1.5,
    "MPC_XY_CRUISE": 5.0,
    "MPC_XY_VEL_MAX": 12.0,
    "MPC_Z_VEL_MAX_UP": 3.0,
    "RTL_RETURN_ALT": 30.0,
    "SDLOG_MODE": 0,
    "SDLOG_PROFILE": 1,
    "SENS_BOARD_ROT": 0,
    "SYS_AUTOSTART": 4014,
    "SYS_AUTOCONFIG": 0,
}

SYSTEM_DEFAULT, AIRFRAME_DEFAULT = 1, 2

#: (parameter, default, which): stored only where the default differs from the value in use.
DEFAULTS: tuple[tuple[str, Number, int], ...] = (
    ("BAT1_CAPACITY", -1.0, SYSTEM_DEFAULT | AIRFRAME_DEFAULT),
    ("BAT1_N_CELLS", 0, SYSTEM_DEFAULT),
    ("BAT1_V_CHARGED", 4.05, SYSTEM_DEFAULT | AIRFRAME_DEFAULT),
    ("BAT1_V_EMPTY", 3.6, SYSTEM_DEFAULT | AIRFRAME_DEFAULT),
    ("BAT_LOW_THR", 0.15, SYSTEM_DEFAULT | AIRFRAME_DEFAULT),
    ("COM_FLIGHT_UUID", 0, SYSTEM_DEFAULT | AIRFRAME_DEFAULT),
    ("GF_MAX_HOR_DIST", 0.0, SYSTEM_DEFAULT | AIRFRAME_DEFAULT),
    ("GF_MAX_VER_DIST", 0.0, SYSTEM_DEFAULT | AIRFRAME_DEFAULT),
    ("IMU_GYRO_CUTOFF", 30.0, SYSTEM_DEFAULT),
    ("MC_PITCHRATE_P", 0.15, SYSTEM_DEFAULT),
    ("MC_ROLLRATE_P", 0.15, SYSTEM_DEFAULT),
    ("MC_ROLLRATE_P", 0.14, AIRFRAME_DEFAULT),
    ("MIS_TAKEOFF_ALT", 2.5, SYSTEM_DEFAULT | AIRFRAME_DEFAULT),
    ("MPC_THR_HOVER", 0.5, SYSTEM_DEFAULT),
    ("MPC_TILTMAX_AIR", 45.0, SYSTEM_DEFAULT | AIRFRAME_DEFAULT),
    ("SYS_AUTOSTART", 0, SYSTEM_DEFAULT | AIRFRAME_DEFAULT),
)

EXCLUDED_TOPICS = ("airspeed_validated", "camera_capture", "follow_target", "landing_target_pose")

BOOT_CONSOLE = """HW arch: PX4_FMU_V6C
HW type: V6C002001
PX4 git-hash: 5d1f0a93be0c47e2a6615b9d02f7c83e4410a7d6
PX4 version: Release 1.16.0 (17825023)
OS: NuttX
MCU: STM32H7[4|5]xxx, rev. V
INFO  [param] selected parameter default file /fs/mtd_params
Board defaults: /etc/init.d/rc.board_defaults
Loading airframe: /etc/init.d/airframes/4014_demo_quad
INFO  [dataman] data manager file '/fs/microsd/dataman' size is 128016 bytes
Board sensors: /etc/init.d/rc.board_sensors
bmi055_accel #0 on SPI bus 1 rotation 4
icm42688p #0 on SPI bus 1 rotation 6
ist8310 #0 on I2C bus 4 address 0xC rotation 10
INFO  [gps] started on /dev/ttyS0
WARN  [rc_update] no trim for channel 9 – defaults
INFO  [logger] logger started (mode=all)
NuttShell (NSH) NuttX-11.0.0
nsh> """

_COUNTERS = (
    ("logger_sd_fsync", 0.3, 4110.0),
    ("logger_sd_write", 24.0, 390.0),
    ("mc_pos_control: cycle time", 100.0, 84.0),
    ("mc_rate_control: cycle", 400.0, 21.0),
    ("control_allocator: cycle", 400.0, 29.5),
    ("ekf2: EKF update", 100.0, 310.2),
    ("commander: preflight check", 8.0, 402.7),
    ("sensors: cycle", 250.0, 33.1),
)


def perf_counters(uptime_s: float) -> list[str]:
    """Return lines of performance counters *uptime_s* after boot."""
    lines = []
    for name, rate, mean_us in _COUNTERS:
        n = int(rate * uptime_s)
        lines.append(
            f"{name}: {n} events, {int(n * mean_us)}us elapsed, {mean_us:.2f}us avg, "
            f"min {int(mean_us * 0.6)}us max {int(mean_us * 7.3)}us {mean_us * 0.31:.3f}us rms"
        )
    return [*lines, "dma_alloc: 8 events", "ekf2: IMU message missed: 1 events"]


_TASKS = (("Idle Task", 0, 61.0), ("wq:rate_ctrl", 617, 8.4), ("wq:INS0", 618, 10.9), ("logger", 1005, 5.2))


def perf_top(uptime_s: float) -> list[str]:
    """Return lines of a task table *uptime_s* after boot; one line is empty, as in real logs."""
    rows = [f"{pid:4} {task:<26} {int(uptime_s * cpu * 10):8} {cpu:6.3f} READY" for task, pid, cpu in _TASKS]
    return [
        " PID COMMAND                     CPU(ms) CPU(%) STATE",
        *rows,
        "",
        f"Uptime: {uptime_s:.3f}s total, {uptime_s * 0.61:.3f}s idle",
    ]


#: Arguments (name, type) and texts of the events that occur in the flight; the group decides what is shown.
EVENTS: dict[str, tuple[str, str, tuple[tuple[str, str], ...]]] = {
    "demo_log_opened": (
        "default",
        "Writing log {1}-{2}-{3}/{4}_{5}_{6}.ulg",
        tuple((name, "uint16_t") for name in ("year", "month", "day", "hour", "minute", "second")),
    ),
    "demo_armed_by": ("default", "Motors armed by {1}", (("reason", "px4::arm_disarm_reason_t"),)),
    "demo_takeoff": ("default", "Climbing to {1:.1m_v} above the ground", (("altitude", "float"),)),
    "demo_mode": ("default", "Flight mode is now {1}", (("mode", "px4::navigation_mode_t"),)),
    "demo_battery_at": (
        "default",
        "Battery at {1}% after {2:.2} minutes; <param>BAT_LOW_THR</param> warns",
        (("remaining", "uint8_t"), ("minutes", "float")),
    ),
    "demo_wind": ("default", "Wind of {1:.1m/s} from {2} degrees", (("speed", "float"), ("from", "int16_t"))),
    "demo_landed": ("default", "Touchdown {1:.2m} from the take-off place", (("distance", "float"),)),
    "demo_disarmed_by": ("default", "Motors stopped by {1}", (("reason", "px4::arm_disarm_reason_t"),)),
    "demo_health": (
        "health",
        "Components that need attention: {1}",
        (("components", "px4::health_component_t"), ("sequence", "uint32_t")),
    ),
}


def event_id(name: str) -> int:
    """Return the id of event *name*: component 1 in the top byte, 24 bits from the name."""
    return 1 << 24 | zlib.crc32(name.encode()) & 0xFFFFFF


def event_metadata() -> bytes:
    """Return event definitions in the format of PX4: JSON of its events library, compressed with XZ."""

    def enum(base: str, entries: dict[int, tuple[str, str]], bitfield: bool = False) -> dict[str, object]:
        table = {str(value): {"name": n, "description": text} for value, (n, text) in entries.items()}
        return {"type": base, "entries": table} | ({"is_bitfield": True} if bitfield else {})

    groups: dict[str, dict[str, dict[str, object]]] = {"default": {"events": {}}, "health": {"events": {}}}
    for name, (group, message, arguments) in EVENTS.items():
        groups[group]["events"][str(event_id(name) & 0xFFFFFF)] = {
            "name": name,
            "message": message,
            "arguments": [{"name": a, "type": kind} for a, kind in arguments],
        }
    definitions = {
        "version": 2,
        "components": {
            "1": {
                "namespace": "px4",
                "enums": {
                    "arm_disarm_reason_t": enum(
                        "uint8_t",
                        {
                            1: ("rc_stick", "stick gesture"),
                            2: ("rc_switch", "remote control switch"),
                            6: ("auto_disarm_land", "landing"),
                        },
                    ),
                    "navigation_mode_t": enum(
                        "uint8_t",
                        {2: ("position", "Position"), 3: ("mission", "Mission"), 18: ("land", "Land")},
                    ),
                    "health_component_t": enum(
                        "uint64_t",
                        {1: ("none", "nothing"), 8: ("gps", "GPS"), 16: ("battery", "battery")},
                        bitfield=True,
                    ),
                },
                "event_groups": groups,
            }
        },
    }
    return lzma.compress(json.dumps(definitions, separators=(",", ":")).encode(), preset=9)
