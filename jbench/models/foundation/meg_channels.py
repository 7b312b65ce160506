"""Sensors of MEG as LaBraM reads them: by the electrode of its own that is nearest, as NeuralBench has it.

MIT licence, Meta Platforms (models/channel_mappings/labram.json). The three sensors of a place of Neuromag are one.
"""

_NEAREST = {  # '{}' is a number; of Neuromag without its last figure
    'MEG{:03}': """
        11:F7 12:F5 13:FC5 14:FT7 21:FC3 22:FC3 23:C3 24:C3 31:F3 32:F3 33:FC1 34:F3 41:FC1 42:FC1 43:C1 44:C1
        51:AF1 52:AF1 53:F1 54:F1 61:F1 62:FCZ 63:FCZ 64:FC1 71:CZ 72:CZ 73:CZ 74:CZ 81:AFZ 82:FZ 91:AF2 92:AF2
        93:F2 94:FZ 101:FZ 102:FZ 103:FCZ 104:FCZ 111:FC2 112:FC2 113:C2 114:C2 121:F4 122:F4 123:F2 124:FC2 131:FC4
        132:FC4 133:C4 134:C4 141:F6 142:F6 143:FT8 144:FC6 151:C5 152:CCP5 153:TP7 154:TTP7h 161:CCP3 162:CCP3
        163:CP3 164:CP3 171:P7 172:CP5 173:P5 174:PO7 181:CCP1 182:CCP1 183:CPZ 184:CP1 191:P1 192:P1 193:PO3 194:P3
        201:CPZ 202:CPZ 203:PZ 204:PZ 211:PZ 212:POZ 213:O2 214:OZ 221:CCP2 222:CCP2 223:CP2 224:CPZ 231:CP2 232:P4
        233:PO4 234:P2 241:CCP4 242:CCP4 243:CP4 244:CP2 251:P6 252:CP6 253:TPP8h 254:PO8 261:C6 262:T8 263:TP8
        264:CCP6
    """,
    'MLC{:02}': """
        11:FCZ 12:FC1 13:FC1 14:FC1 15:C3 16:C3 17:CCP3 21:C1 22:C1 23:C1 24:CCP1 25:CCP3 31:CCP1 32:CCP1 41:C1
        42:CP1 51:CZ 52:CZ 53:CCP1 54:CP1 55:CP1 61:CZ 62:CPZ 63:CPZ
    """,
    'MLF{:02}': """
        11:AF1 12:AF3 13:AF5 14:F5 21:AFZ 22:AF1 23:AF3 24:F3 31:AF1 32:F1 33:F3 34:F3 35:FC3 41:FZ 42:F1 43:F1
        44:F3 45:FC3 46:FC3 51:FZ 52:F1 53:FC1 54:FC3 55:FC3 56:C3 61:FC1 62:FC1 63:FC1 64:FC3 65:C3 66:C3 67:CCP3
    """,
    'MLO{:02}': """
        11:PO1 12:PO3 13:P3 14:P3 21:PO1 22:PO3 23:PO3 24:PO5 31:O1 32:O1 33:PO5 34:P5 41:OZ 42:O1 43:O1 44:PO7
        51:O1 52:O1 53:PO7
    """,
    'MLP{:02}': """
        11:PZ 12:CP1 21:PZ 22:CP1 23:CP1 31:P1 32:P1 33:P1 34:CP1 35:CP3 41:P1 42:P1 43:P3 44:CP3 45:CP3 51:POZ
        52:PO1 53:P1 54:P3 55:P3 56:CP3 57:CP3
    """,
    'MLT{:02}': """
        11:FC5 12:FC5 13:C5 14:CCP5 15:CP5 16:P5 21:F5 22:FC5 23:C5 24:CCP5 25:CP5 26:CP5 27:P5 31:F7 32:FC5 33:C5
        34:TTP7h 35:TTP7h 36:CP5 37:P5 41:FT7 42:FT7 43:T7 44:TP7 45:TP7 46:P7 47:P7 51:FT7 52:FTT9h 53:T7 54:TP7
        55:TPP9h 56:P7 57:PO7
    """,
    'MRC{:02}': """
        11:FCZ 12:FCZ 13:FC2 14:C2 15:C2 16:CCP4 17:CCP4 21:CZ 22:C2 23:C2 24:CCP2 25:CCP4 31:CCP2 32:CP2 41:C2
        42:CP2 51:CZ 52:CZ 53:CCP2 54:CP2 55:CPZ 61:CZ 62:CPZ 63:CPZ
    """,
    'MRF{:02}': """
        11:AF2 12:AF4 13:AF6 14:F6 21:AFZ 22:AF2 23:AF4 24:F4 25:F6 31:AF2 32:F2 33:F4 34:F4 35:FC4 41:FZ 42:F2
        44:F4 45:FC4 46:FC4 51:FZ 52:F2 53:FC2 54:FC4 55:FC4 56:C4 61:FC2 62:FC2 63:FC2 64:FC4 65:C4 66:C4 67:CCP4
    """,
    'MRO{:02}': """
        12:PO2 14:P4 21:PO2 22:PO2 23:PO4 24:PO6 31:OZ 32:O2 33:PO6 34:PO6 41:OZ 42:O2 43:O2 44:PO8 51:IZ 52:O2
        53:PO8
    """,
    'MRP{:02}': """
        11:PZ 12:CP2 21:PZ 22:P2 23:CP2 31:PZ 32:P2 33:P2 34:CP2 35:CP2 41:P2 42:P2 43:P4 44:CP4 45:CP4 51:POZ
        52:PO2 53:P2 54:P4 55:P4 56:CP4 57:CP4
    """,
    'MRT{:02}': """
        11:FC6 12:FC6 13:C6 14:CP6 15:CP6 16:P4 21:F6 22:FC6 23:C6 24:CCP6 25:CP6 26:P6 27:P6 31:F8 32:FC6 33:C6
        34:CCP6 35:CP6 36:TPP8h 37:P6 41:FT8 42:FT8 43:T8 44:TP8 45:TP8 46:P8 47:PO8 51:FT8 52:FTT10h 53:T8 54:TP8
        55:TPP10h 56:P8 57:PO8
    """,
    'MZC{:02}': """
        1:FCZ 2:CZ 3:CPZ 4:CPZ
    """,
    'MZF{:02}': """
        1:AFZ 2:AFZ 3:FZ
    """,
    'MZO{:02}': """
        1:POZ 2:OZ 3:IZ
    """,
    'MZP{:02}': """
        1:PZ
    """,
}


def _named(form: str, number: str, name: str) -> dict[str, str]:
    one = form.format(int(number))
    return {f'{one}{k}': name for k in (1, 2, 3)} if one.startswith('MEG') else {one: name}


SENSORS = {
    sensor: name
    for form, pairs in _NEAREST.items()
    for number, _, electrode in (pair.partition(':') for pair in pairs.split())
    for sensor, name in _named(form, number, electrode).items()
}
